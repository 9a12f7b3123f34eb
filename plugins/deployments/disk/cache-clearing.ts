import type { EngineDiskReader } from 'busbar/api/builds'
import type { Log } from 'busbar/sdk'
import { answered, type Clearance, seenWith, unneeded, waitedFor } from './clearance.js'
import type { DiskRoom } from './disk-use-decision.js'

interface ClearingParts {
  readonly engineDisk: Pick<EngineDiskReader, 'makeRoom'>
  readonly log: Pick<Log, 'debug'>
}

/** Has caches go when the disk is nearly short, and says when that is over. */
export class CacheClearing {
  #state: Clearance = unneeded

  constructor(private readonly parts: ClearingParts) {}

  /** Asks for room where that is due, and does not wait for it. */
  look(room: DiskRoom | undefined): Clearance['kind'] {
    const now = performance.now()
    const seen = seenWith(this.#state, room, now)
    if (seen.kind === 'asked' && seen !== this.#state) void this.#ask(seen)
    this.#state = waitedFor(seen, room, now)
    return this.#state.kind
  }

  async #ask(asked: Clearance): Promise<void> {
    const { engineDisk, log } = this.parts
    try {
      await engineDisk.makeRoom()
    } catch (error) {
      log.debug({ err: error }, 'room could not be asked for; going by what is free without it')
    }
    // Neither one that was given up, nor one of a shortage before.
    if (this.#state === asked) this.#state = answered(performance.now())
  }
}
