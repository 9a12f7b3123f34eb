import type { Log } from 'busbar/sdk'
import type { GuardedConnections } from './guarded-connections.js'
import type { LockQuestions } from './lock-questions.js'
import { type Client, clientOf, isPlatformCalled } from './lock-waits.js'

interface TakenLocksParts {
  readonly questions: LockQuestions
  readonly guarded: GuardedConnections
  readonly log: Log
}

/**
 * Locks of the platform by name that cannot be had. Nobody is seen to wait for such a one, as they are only tried, and that another
 * process of the platform has it is how it is meant; who else has it is named, and ended when it is a plugin of this process.
 */
export class TakenLocks {
  /** By name, the process that has been told of. */
  readonly #told = new Map<string, number>()
  readonly #asked = new Set<string>()

  constructor(private readonly parts: TakenLocksParts) {}

  async look(name: string): Promise<void> {
    if (this.#asked.has(name)) return
    this.#asked.add(name)
    const { questions, guarded, log } = this.parts
    try {
      const holder = await questions.holderOf(name)
      // A plugin may call its connection as it likes.
      const isPlugins = holder !== undefined && guarded.of(holder.pid) !== undefined
      if (holder === undefined || (!isPlugins && isPlatformCalled(holder.name))) this.#told.delete(name)
      else this.#tell(name, holder)
    } catch (error) {
      log.debug({ err: error }, 'who has a lock of the platform could not be asked')
    } finally {
      this.#asked.delete(name)
    }
  }

  #tell(name: string, holder: Client): void {
    const { guarded, log } = this.parts
    const own = guarded.of(holder.pid)
    if (own !== undefined) own.guarded.end(own.client, { kind: 'taken', lock: name }, 1)
    else if (this.#told.get(name) !== holder.pid) {
      const { who, remedy } = clientOf(holder, guarded.pluginOf)
      log.warn(
        { process: holder.pid },
        `${who} has the lock "${name}", which is the platform's: what is done under it waits; ${remedy}`
      )
    }
    this.#told.set(name, holder.pid)
  }
}
