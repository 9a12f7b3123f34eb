import type { Log } from 'busbar/sdk'
import type { GuardedConnections } from './guarded-connections.js'
import type { LockQuestions } from './lock-questions.js'
import { clientOf } from './lock-waits.js'
import { mostLocks } from './who-to-end.js'

interface LockRoomParts {
  readonly questions: LockQuestions
  readonly guarded: GuardedConnections
  readonly log: Log
  /** Of all that have just been refused, one looks. */
  readonly everyMs: number
}

/** Where the server's table of locks is full: who has most is named, and ended when it is a plugin of this process. */
export class LockRoom {
  #madeAt = -Infinity

  constructor(private readonly parts: LockRoomParts) {}

  async make(): Promise<void> {
    const { questions, guarded, log, everyMs } = this.parts
    const now = performance.now()
    if (now - this.#madeAt < everyMs) return
    this.#madeAt = now
    try {
      const most = mostLocks(await questions.counts(), guarded.pluginOf)
      if (most === undefined) return
      const { who, remedy } = clientOf(most, guarded.pluginOf)
      log.warn(
        { process: most.pid, locks: most.locks },
        `PostgreSQL has no room for more locks, of which ${who} has most: ${remedy}, or raise max_locks_per_transaction`
      )
      const found = guarded.of(most.pid)
      found?.guarded.end(found.client, { kind: 'locks', locks: most.locks }, 1)
    } catch (error) {
      log.warn({ err: error }, 'PostgreSQL has no room for more locks, and who has them could not be asked')
    }
  }
}
