import type { SwitchProof } from 'busbar/api/deployments'
import { isProxyError, readAccessLine } from './log/access-line.js'
import { FileTail } from './log/file-tail.js'

/** What Caddy logs in a second under full load is some MiB. */
const mostBytes = 8 * 1024 * 1024

/** Counts, out of the access log, what a switch does to the requests of some hostnames. */
export class SwitchMeter {
  #served = 0
  #failed = 0
  #longestGapMs = 0
  #lastEnd: number | undefined

  private constructor(
    private readonly tail: FileTail | undefined,
    private readonly hostnames: ReadonlySet<string>
  ) {}

  /** `path` is null where there is no log: nothing is counted then. */
  static async begin(path: string | null, hostnames: ReadonlySet<string>): Promise<SwitchMeter> {
    return new SwitchMeter(path === null ? undefined : await FileTail.begin(path, { mostBytes }), hostnames)
  }

  /** Reads what has come. */
  async look(): Promise<void> {
    for (const line of (await this.tail?.lines()) ?? []) this.#count(line)
  }

  async end(): Promise<Pick<SwitchProof, 'served' | 'failed' | 'longestGapMs'>> {
    await this.look()
    await this.tail?.close()
    return { served: this.#served, failed: this.#failed, longestGapMs: this.#longestGapMs }
  }

  #count(line: string): void {
    const request = readAccessLine(line)
    if (request === null || !this.#isOurs(request.hostname)) return
    if (isProxyError(line)) this.#failed++
    else this.#served++
    const end = request.at + request.latencyMs
    // While it waited, nothing else was answered: from the answer before, or from when it came.
    if (this.#lastEnd !== undefined)
      this.#longestGapMs = Math.max(this.#longestGapMs, Math.min(end - this.#lastEnd, request.latencyMs))
    this.#lastEnd = Math.max(end, this.#lastEnd ?? 0)
  }

  #isOurs(hostname: string): boolean {
    return this.hostnames.has(hostname) || this.hostnames.has(`*${hostname.slice(hostname.indexOf('.'))}`)
  }
}
