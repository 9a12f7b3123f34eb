import { FileTail } from './file-tail.js'
import { TlsFaults } from './tls-faults.js'

/** Of one look; a log that grows faster is read in several. */
const mostBytes = 4 * 1024 * 1024

/** Why certificates are missing, out of the log that Caddy writes to a file. */
export class TlsLog {
  readonly #faults = new TlsFaults()
  #tail: Promise<FileTail> | undefined
  #reading: Promise<void> = Promise.resolve()

  constructor(private readonly path: string) {}

  async faultOf(hostname: string): Promise<string | null> {
    this.#reading = this.#reading.then(async () => await this.#read()).catch(() => {})
    await this.#reading
    return this.#faults.faultOf(hostname)
  }

  async close(): Promise<void> {
    await this.#reading
    await (await this.#tail)?.close()
  }

  async #read(): Promise<void> {
    // What an earlier process of the platform has seen counts as well.
    this.#tail ??= FileTail.begin(this.path, { mostBytes, last: mostBytes })
    for (const line of await (await this.#tail).lines()) this.#faults.read(line)
  }
}
