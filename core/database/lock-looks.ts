import type { Log } from 'busbar/sdk'
import { behindWaits } from './blame.js'
import { BlindEnd } from './blind-end.js'
import type { Guarded, GuardedConnections } from './guarded-connections.js'
import type { LockQuestions } from './lock-questions.js'
import { clientOf, isPlatformCalled, type LockWait } from './lock-waits.js'
import { errorCode, lockNotAvailable } from './problems.js'
import type { Session } from './session.js'
import { TableNames } from './table-names.js'
import { rememberedLooks, WaitingTime } from './waiting-time.js'

export interface LockLooksParts {
  readonly session: Session
  readonly questions: LockQuestions
  readonly guarded: GuardedConnections
  readonly log: Log
  readonly everyMs: number
  /** Whether no connection is in use, so that nobody can be waiting. */
  readonly isQuiet: () => boolean
  /** Whether a connection of this process is being made. */
  readonly isConnecting: () => boolean
  /** Whether it is a connection of this process. */
  readonly isOurs: (pid: number) => boolean
  /** After so long without an answer to the session's attempt to connect, a plugin is ended for that. */
  readonly unansweredLimitMs: number
}

/** After so long, one who is no plugin of this process is named in the log. */
const reportAfterMs = 3_000

/** Looks again and again who waits for whose locks, has a plugin ended that keeps the platform waiting, and remembers the rest for errors. */
export class LockLooks {
  /** By who waits; remembered, as the error of one that has ended comes on another connection. */
  readonly #waits = new Map<number, { readonly wait: LockWait; readonly look: number }>()
  /** Because of plugins of this process, and by process because of others. */
  readonly #times: WaitingTime<Guarded | number>
  readonly #names: TableNames
  readonly #blind: BlindEnd
  readonly #timer: NodeJS.Timeout
  #looks = 0
  #isLooking = false

  constructor(private readonly parts: LockLooksParts) {
    this.#times = new WaitingTime(2 * parts.everyMs)
    this.#names = new TableNames(parts.session)
    this.#blind = new BlindEnd(parts)
    this.#timer = setInterval(() => {
      void this.#look()
    }, parts.everyMs).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** What this connection waits for, or has waited for a moment ago. */
  waitOf(pid: number | undefined): LockWait | undefined {
    return this.#waits.get(pid ?? 0)?.wait
  }

  sentence(wait: LockWait): string {
    const blocker = { pid: wait.blocker, name: wait.blockerName }
    const { who, remedy } = clientOf(blocker, this.parts.guarded.pluginOf)
    return `${who} keeps ${wait.table ?? 'what is needed'} locked: try again, and ${remedy}`
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    const { session, questions, guarded, log, isQuiet, isConnecting } = this.parts
    if (isQuiet()) {
      this.#waits.clear()
      this.#times.clear()
      return
    }
    if (!session.isConnected) {
      // Closed meanwhile, it is not made.
      session.connected().catch(() => {})
      this.#blind.unanswered(session.unansweredSince)
      return
    }
    this.#isLooking = true
    try {
      this.#note(await this.#names.added(await questions.waits(guarded.pids, isConnecting())))
    } catch (error) {
      log.debug({ err: error }, 'who waits for locks could not be asked')
      if (errorCode(error) === lockNotAvailable) this.#blind.end()
    } finally {
      this.#isLooking = false
    }
  }

  #note(seen: readonly LockWait[]): void {
    const { guarded, log } = this.parts
    this.#looks++
    const waits = behindWaits(seen, pid => guarded.of(pid) !== undefined)
    for (const wait of waits) this.#waits.set(wait.waiting, { wait, look: this.#looks })
    for (const [pid, { look }] of this.#waits)
      if (look <= this.#looks - rememberedLooks) this.#waits.delete(pid)
    const counted = waits.flatMap(wait => {
      const blocker = guarded.of(wait.blocker)?.guarded
      if (!this.#counts(wait, blocker)) return []
      return { wait, whose: blocker ?? wait.blocker, limitMs: blocker?.limitMs ?? reportAfterMs }
    })
    for (const { wait, whose, times } of this.#times.note(counted, performance.now())) {
      const client = guarded.of(wait.blocker)?.client
      if (typeof whose !== 'number' && client !== undefined) whose.end(client, { kind: 'waits', wait }, times)
      else if (times === 1)
        log.warn({ process: wait.blocker }, `statements wait for a lock: ${this.sentence(wait)}`)
    }
  }

  #counts(wait: LockWait, blocker: Guarded | undefined): boolean {
    const { guarded, isOurs } = this.parts
    const { waiting, waitingName, isConnecting } = wait
    const isPlatforms =
      isConnecting === true ||
      (guarded.of(waiting) === undefined && (isPlatformCalled(waitingName) || isOurs(waiting)))
    return blocker === undefined ? isPlatforms : blocker.minds(wait, isPlatforms)
  }
}
