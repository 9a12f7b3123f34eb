import type { PoolClient } from 'pg'
import { type Guarded, GuardedConnections, processIdOf } from './guarded-connections.js'
import { LockLooks, type LockLooksParts } from './lock-looks.js'
import { LockQuestions } from './lock-questions.js'
import { LockRoom } from './lock-room.js'
import { connectionName, type LockWait } from './lock-waits.js'
import {
  errorCode,
  hasNoLockRoom,
  isConnectionError,
  lockNotAvailable,
  problems,
  wasNeverSent,
  withCause
} from './problems.js'
import { TakenLocks } from './taken-locks.js'

type LockWatchParts = Omit<LockLooksParts, 'questions' | 'guarded'>

const timeUp =
  'the statement was cancelled, as it took longer than one of a plugin may: do it in parts, or begin a transaction with "set local statement_timeout = …"'
const isTimeUp = (error: unknown): boolean =>
  errorCode(error) === '57014' && /statement timeout/.test((error as Error).message)

/** By its time limit, as opposed to a `nowait`. */
const wasCancelled = (error: unknown): boolean =>
  error instanceof Error && 'routine' in error && error.routine === 'ProcessInterrupts'

/**
 * Sees who waits for whose locks, on the session's connection, while any connection of this process is in use: so errors can say
 * who keeps what locked, and a connection of a third-party plugin that keeps the platform waiting is ended.
 */
export class LockWatch {
  readonly #guarded = new GuardedConnections()
  readonly #questions: LockQuestions
  readonly #looks: LockLooks
  readonly #room: LockRoom
  readonly #stopTaken: () => void
  readonly #ended = new WeakMap<PoolClient, Error>()

  constructor(parts: LockWatchParts) {
    const guarded = this.#guarded
    const questions = new LockQuestions(parts.session, parts.log)
    this.#questions = questions
    this.#looks = new LockLooks({ ...parts, questions, guarded })
    this.#room = new LockRoom({ ...parts, questions, guarded })
    const taken = new TakenLocks({ ...parts, questions, guarded })
    this.#stopTaken = parts.session.onRefusedLock(name => void taken.look(name))
  }

  /** From now on, until the returned function is called. */
  guard(client: PoolClient, guarded: Guarded): () => void {
    return this.#guarded.add(client, guarded)
  }

  /** Why the connection is ended: what is under way on it fails with this, unless the returned function is called. */
  end(client: PoolClient, reason: Error): () => void {
    this.#ended.set(client, reason)
    return () => {
      if (this.#ended.get(client) === reason) this.#ended.delete(client)
    }
  }

  /** See `LockQuestions`. */
  async signal(pid: number, what: 'cancel' | 'terminate', began?: string | null): Promise<boolean> {
    return await this.#questions.signal(pid, what, began)
  }

  /**
   * An error of a statement on this connection, as far as more is known of it than the server says. What was never sent can be asked
   * on another connection, unless it `isBound` to this one.
   */
  explain(error: unknown, client: PoolClient, isBound = false): unknown {
    const reason = this.#ended.get(client)
    if (reason !== undefined && isConnectionError(error) && (isBound || !wasNeverSent(error))) return reason
    if (isTimeUp(error)) return new Error(timeUp, { cause: error })
    this.noteRefusal(error)
    if (errorCode(error) !== lockNotAvailable || !wasCancelled(error)) return error
    return withCause(problems.locked({ what: this.#whatIsLocked(client) }), error)
  }

  /** An error of a statement, or of a connection that could not be made. */
  noteRefusal(error: unknown): void {
    if (hasNoLockRoom(error)) void this.#room.make()
  }

  /** Of those connections that are in use, what the ones wait for that wait for a lock; undefined when none does. */
  waitsOf(clients: Iterable<PoolClient>): string | undefined {
    const waits = [...clients].flatMap(client => this.#looks.waitOf(processIdOf(client)) ?? [])
    const [first] = waits
    if (first === undefined) return undefined
    return `${waits.length} of those in use ${waits.length === 1 ? 'waits' : 'wait'} for a lock: ${this.#looks.sentence(first)}`
  }

  /** Whether the one who waits is the plugin itself. */
  isOwn({ waiting, waitingName }: LockWait, plugin: string): boolean {
    return this.#guarded.pluginOf(waiting) === plugin || waitingName === connectionName(plugin)
  }

  close(): void {
    this.#looks.close()
    this.#questions.close()
    this.#stopTaken()
  }

  #whatIsLocked(client: PoolClient): string {
    const wait = this.#looks.waitOf(processIdOf(client))
    return wait === undefined
      ? 'another connection keeps what is needed locked: try again'
      : this.#looks.sentence(wait)
  }
}
