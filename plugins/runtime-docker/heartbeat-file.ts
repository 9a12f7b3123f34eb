import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Log } from 'busbar/sdk'

const everyMs = 5000

/**
 * A file that says when this platform was last alive. It is there only after a death: a platform that stops
 * takes it away, and what happens to containers until it is started again is left to the one who starts it.
 */
export class HeartbeatFile {
  readonly #path: string
  constructor(
    directory: string,
    private readonly clock: Pick<Clock, 'now' | 'every'>,
    private readonly log: Log
  ) {
    this.#path = join(directory, 'heartbeat')
  }

  /** When the platform died that ran before this one; undefined when it was stopped, or there was none. */
  async last(): Promise<Date | undefined> {
    const text = await readFile(this.#path, 'utf8').catch(() => '')
    const at = new Date(text.trim())
    return Number.isNaN(at.getTime()) ? undefined : at
  }

  /** Writes until the returned function is called. */
  start(): () => Promise<void> {
    let writing = Promise.resolve()
    const write = async (): Promise<void> => {
      writing = writeFile(this.#path, `${this.clock.now().toISOString()}\n`).catch((error: unknown) =>
        this.log.warn(
          { err: error },
          'the heartbeat of the platform cannot be written: containers that a crash of the whole machine ends will not be started again'
        )
      )
      await writing
    }
    void write()
    const stop = this.clock.every(everyMs, write)
    return async () => {
      stop()
      await writing
      await rm(this.#path, { force: true })
    }
  }
}
