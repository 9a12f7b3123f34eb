import type { Log } from 'busbar/sdk'
import type { PoolClient } from 'pg'
import { behindWaits } from './blame.js'
import { blockerOf, connectionName, isPlatformCalled, type LockWait, lockWaitsText } from './lock-waits.js'
import {
  errorCode,
  isConnectionError,
  lockNotAvailable,
  problems,
  wasNeverSent,
  withCause
} from './problems.js'
import type { Session } from './session.js'

/** A connection on which code of a third-party plugin runs, and how long others may wait for it. */
interface Guarded {
  readonly plugin: string
  readonly limitMs: number
  /** Whose waiting counts. */
  readonly minds: (wait: LockWait, isPlatforms: boolean) => boolean
  /** Again after as long again, when the first time did not help. */
  readonly end: (wait: LockWait, times: number) => void
}

interface LockWatchParts {
  readonly session: Session
  readonly log: Log
  readonly everyMs: number
  /** Whether no connection is in use, so that nobody can be waiting. */
  readonly isQuiet: () => boolean
  /** Whether it is a connection of this process. */
  readonly isOurs: (pid: number) => boolean
}

interface Blocking {
  readonly since: string | null
  /** How long it has been seen to. */
  forMs: number
  seenAt: number
  times: number
}

/** Looks in a row for which a wait is remembered: the error of one that has ended comes on another connection. */
const rememberedLooks = 4
/** After so long, one who is no plugin of this process is named in the log. */
const reportAfterMs = 3_000

export const processIdOf = (client: PoolClient): number | undefined =>
  (client as unknown as { readonly processID?: number | null }).processID ?? undefined

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
  readonly #guarded = new Map<number, Guarded>()
  /** By who waits. */
  readonly #waits = new Map<number, { readonly wait: LockWait; readonly look: number }>()
  /** By who keeps others waiting, as long as it does so in the same transaction. */
  #blocking = new Map<number, Blocking>()
  readonly #ended = new WeakMap<PoolClient, Error>()
  readonly #timer: NodeJS.Timeout
  #looks = 0
  #isLooking = false

  constructor(private readonly parts: LockWatchParts) {
    this.#timer = setInterval(() => {
      void this.#look()
    }, parts.everyMs).unref()
  }

  /** From now on, until the returned function is called. */
  guard(client: PoolClient, guarded: Guarded): () => void {
    const pid = processIdOf(client)
    if (pid === undefined) return () => {}
    this.#guarded.set(pid, guarded)
    return () => {
      if (this.#guarded.get(pid) === guarded) this.#guarded.delete(pid)
    }
  }

  /** Why the connection is ended: what is under way on it fails with this, unless the returned function is called. */
  end(client: PoolClient, reason: Error): () => void {
    this.#ended.set(client, reason)
    return () => {
      if (this.#ended.get(client) === reason) this.#ended.delete(client)
    }
  }

  /**
   * Sends a signal to the server's process: `pg_cancel_backend` or `pg_terminate_backend`. False when it is gone, or not in the
   * transaction of `since` any more. Throws while the session has no connection: later the process may be another one's.
   */
  async signal(pid: number, what: 'cancel' | 'terminate', since?: string | null): Promise<boolean> {
    const rows = await this.parts.session.query<{ isSent: boolean }>(
      `select pg_${what}_backend(pid) as "isSent" from pg_stat_activity
       where pid = $1::int and datname = current_database() and (not $2::bool or xact_start::text is not distinct from $3)`,
      [pid, since !== undefined, since]
    )
    return rows[0]?.isSent === true
  }

  /** An error of a statement on this connection, as far as more is known of it than the server says. */
  explain(error: unknown, client: PoolClient): unknown {
    const reason = this.#ended.get(client)
    if (reason !== undefined && isConnectionError(error) && !wasNeverSent(error)) return reason
    if (isTimeUp(error)) return new Error(timeUp, { cause: error })
    if (errorCode(error) !== lockNotAvailable || !wasCancelled(error)) return error
    return withCause(problems.locked({ what: this.#whatIsLocked(client) }), error)
  }

  /** Of those connections that are in use, what the ones wait for that wait for a lock; undefined when none does. */
  waitsOf(clients: Iterable<PoolClient>): string | undefined {
    const waits = [...clients].flatMap(client => this.#waitOf(client) ?? [])
    const [first] = waits
    if (first === undefined) return undefined
    return `${waits.length} of those in use ${waits.length === 1 ? 'waits' : 'wait'} for a lock: ${this.#sentence(first)}`
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #waitOf(client: PoolClient): LockWait | undefined {
    return this.#waits.get(processIdOf(client) ?? 0)?.wait
  }

  #whatIsLocked(client: PoolClient): string {
    const wait = this.#waitOf(client)
    return wait === undefined
      ? 'another connection keeps what is needed locked: try again'
      : this.#sentence(wait)
  }

  #sentence(wait: LockWait): string {
    const { who, remedy } = blockerOf(wait, pid => this.#guarded.get(pid)?.plugin)
    return `${who} keeps ${wait.table ?? 'what is needed'} locked: try again, and ${remedy}`
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    const { session, log, isQuiet } = this.parts
    if (isQuiet()) {
      this.#waits.clear()
      this.#blocking.clear()
      return
    }
    this.#isLooking = true
    try {
      await session.connected()
      this.#note(await session.query<LockWait & object>(lockWaitsText))
    } catch (error) {
      log.debug({ err: error }, 'who waits for locks could not be asked')
    } finally {
      this.#isLooking = false
    }
  }

  #note(seen: readonly LockWait[]): void {
    const now = performance.now()
    this.#looks++
    const waits = behindWaits(seen, pid => this.#guarded.has(pid))
    for (const wait of waits) this.#waits.set(wait.waiting, { wait, look: this.#looks })
    for (const [pid, { look }] of this.#waits)
      if (look <= this.#looks - rememberedLooks) this.#waits.delete(pid)
    const blocking = new Map<number, Blocking>()
    for (const wait of waits) {
      const { blocker, since } = wait
      const guarded = this.#guarded.get(blocker)
      if (blocking.has(blocker) || !this.#counts(wait, guarded)) continue
      const known = this.#blocking.get(blocker)
      const entry = known?.since === since ? known : { since, forMs: 0, seenAt: now, times: 0 }
      // What has happened while this process did nothing is not known.
      entry.forMs += Math.min(now - entry.seenAt, 2 * this.parts.everyMs)
      entry.seenAt = now
      blocking.set(blocker, entry)
      const limitMs = guarded?.limitMs ?? reportAfterMs
      if (entry.forMs < limitMs * (entry.times + 1)) continue
      entry.times++
      if (guarded !== undefined) guarded.end(wait, entry.times)
      else if (entry.times === 1)
        this.parts.log.warn({ process: blocker }, `statements wait for a lock: ${this.#sentence(wait)}`)
    }
    this.#blocking = blocking
  }

  #counts(wait: LockWait, guarded: Guarded | undefined): boolean {
    const { waiting, waitingName } = wait
    const isPlatforms =
      !this.#guarded.has(waiting) && (isPlatformCalled(waitingName) || this.parts.isOurs(waiting))
    return guarded === undefined ? isPlatforms : guarded.minds(wait, isPlatforms)
  }

  /** Whether the one who waits is the plugin itself. */
  isOwn({ waiting, waitingName }: LockWait, plugin: string): boolean {
    return this.#guarded.get(waiting)?.plugin === plugin || waitingName === connectionName(plugin)
  }
}
