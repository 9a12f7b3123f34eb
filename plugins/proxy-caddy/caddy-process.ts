import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Clock, Exec, Log } from 'busbar/sdk'
import { type AdminClient, Refused } from './admin-client.js'
import type { JsonObject } from './config/json.js'

const startLimitMs = 10_000
const lookMs = 20
/** Of what it says before its log file is open, and when it ends. */
const mostLines = 200

interface ProcessParts {
  readonly exec: Exec
  readonly clock: Clock
  readonly log: Log
  readonly client: AdminClient
  /** Its home: what it keeps beside our configuration is in there. */
  readonly directory: string
}

/** A Caddy that this process runs. */
export class CaddyProcess {
  #running: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined
  readonly #said: string[] = []

  constructor(
    private readonly program: string,
    private readonly parts: ProcessParts
  ) {}

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** What it has said on its standard error lately. */
  said(): readonly string[] {
    return this.#said
  }

  /**
   * Starts it, and has it load a configuration, which holds keys and so goes by no file. Resolves when that is served; rejects with what
   * Caddy says where it is not, and has ended it then. `onEnd` is told when it ends without having been stopped.
   */
  async start(config: JsonObject, onEnd: () => void): Promise<void> {
    const { exec, clock, client, directory } = this.parts
    const abort = new AbortController()
    let exit: string | undefined
    const run = exec.run([this.program, 'run', '--config', '-'], {
      cwd: directory,
      // No other variable: a placeholder of Caddy can read them.
      env: { HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
      // Whether a whole one is taken, an answer to `load` says; of its first one Caddy tells as if it were loaded, and ends.
      input: JSON.stringify({ admin: config.admin }),
      timeoutMs: Number.POSITIVE_INFINITY,
      maxOutputBytes: 64 * 1024,
      signal: abort.signal,
      onLine: line => this.#hear(line)
    })
    const ended = run.then(
      ({ exitCode, signal }) => {
        exit = `it ended with ${signal ?? exitCode}`
      },
      (error: unknown) => {
        exit = error instanceof Error ? error.message : String(error)
      }
    )
    const running = { abort, ended }
    this.#running = running
    const until = clock.elapsed() + startLimitMs
    for (;;) {
      if (exit !== undefined) {
        this.#running = undefined
        throw new Refused(this.#lastError() ?? `${this.program} did not start: ${exit}`)
      }
      if (await answers(client)) break
      if (clock.elapsed() > until) {
        await this.stop()
        throw new Refused(`${this.program} did not answer within ${startLimitMs / 1000} s`)
      }
      await clock.sleep(lookMs)
    }
    try {
      await client.load(config)
    } catch (error) {
      await this.stop()
      throw error
    }
    void ended.then(() => {
      if (this.#running !== running) return
      this.#running = undefined
      onEnd()
    })
  }

  /** Resolves when it has ended. */
  async stop(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    running?.abort.abort(new Error('the platform ends it'))
    await running?.ended
  }

  #hear(line: string): void {
    this.#said.push(line)
    if (this.#said.length > mostLines) this.#said.shift()
    this.parts.log.debug({ line }, 'Caddy')
  }

  /** `run: loading initial config: …` is how it says why it does not start. */
  #lastError(): string | undefined {
    const line = this.#said.findLast(said => /^(?:run|Error): /.test(said)) ?? this.#said.at(-1)
    return line?.replace(/^(?:run|Error): /, '').slice(0, 2000)
  }
}

const answers = async (client: AdminClient): Promise<boolean> =>
  await client.config().then(
    () => true,
    () => false
  )

/** Where a program is: a path as it is, a name in PATH. Undefined where there is none that may be run. */
export async function findProgram(program: string, path: string): Promise<string | undefined> {
  const places = isAbsolute(program) ? [program] : path.split(delimiter).map(folder => join(folder, program))
  for (const place of places)
    if (
      await access(place, constants.X_OK).then(
        () => true,
        () => false
      )
    )
      return place
  return undefined
}
