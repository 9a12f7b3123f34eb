import type { Log } from 'busbar/sdk'
import type { PoolClient } from 'pg'
import { behindWaits } from './blame.js'
import {
  clientOf,
  connectionName,
  isPlatformCalled,
  type LockWait,
  lockCountsText,
  lockWaitsText,
  type SeenWait,
  signalText
} from './lock-waits.js'
import {
  errorCode,
  hasNoLockRoom,
  isConnectionError,
  lockNotAvailable,
  problems,
  wasNeverSent,
  withCause
} from './problems.js'
import type { Session } from './session.js'
import { TableNames } from './table-names.js'
import { rememberedLooks, WaitingTime } from './waiting-time.js'
import { type LockCount, longestBusy, mostLocks } from './who-to-end.js'

/** Why a connection is to be ended. */
export type EndCause =
  | { readonly kind: 'waits'; readonly wait: LockWait }
  /** The catalogs are locked so that nobody can be asked who it is. */
  | { readonly kind: 'blind' }
  | { readonly kind: 'locks'; readonly locks: number }

/** Code of a third-party plugin runs on it, on however many connections, and how long others may wait for it. */
export interface Guarded {
  readonly plugin: string
  readonly limitMs: number
  /** Whose waiting counts. */
  readonly minds: (wait: LockWait, isPlatforms: boolean) => boolean
  /** Since when it is in a transaction or a statement, by the process's clock. */
  readonly busySince: (client: PoolClient) => number | undefined
  /** Again after as long again, when the first time did not help. */
  readonly end: (client: PoolClient, cause: EndCause, times: number) => void
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
  readonly #guarded = new Map<number, { readonly client: PoolClient; readonly guarded: Guarded }>()
  /** By who waits; remembered, as the error of one that has ended comes on another connection. */
  readonly #waits = new Map<number, { readonly wait: LockWait; readonly look: number }>()
  /** Because of plugins of this process, and by process because of others. */
  readonly #times: WaitingTime<Guarded | number>
  readonly #names: TableNames
  readonly #ended = new WeakMap<PoolClient, Error>()
  readonly #timer: NodeJS.Timeout
  readonly #stopWarming: () => void
  #looks = 0
  #isLooking = false
  #roomMadeAt = -Infinity

  constructor(private readonly parts: LockWatchParts) {
    this.#times = new WaitingTime(2 * parts.everyMs)
    this.#names = new TableNames(parts.session)
    this.#stopWarming = parts.session.onConnect(() => void this.#warm())
    this.#timer = setInterval(() => {
      void this.#look()
    }, parts.everyMs).unref()
  }

  /** From now on, until the returned function is called. */
  guard(client: PoolClient, guarded: Guarded): () => void {
    const pid = processIdOf(client)
    if (pid === undefined) return () => {}
    const entry = { client, guarded }
    this.#guarded.set(pid, entry)
    return () => {
      if (this.#guarded.get(pid) === entry) this.#guarded.delete(pid)
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
   * Sends a signal to the server's process: `pg_cancel_backend` or `pg_terminate_backend`. False when it is gone; or, with
   * `began`, when it is not that connection any more or keeps nobody waiting by now. Throws while the session has no connection:
   * later the process may be another one's.
   */
  async signal(pid: number, what: 'cancel' | 'terminate', began?: string | null): Promise<boolean> {
    const rows = await this.parts.session.query<{ isSent: boolean }>(
      signalText(what),
      [pid, began !== undefined, began ?? null],
      `busbar.${what}`
    )
    return rows[0]?.isSent === true
  }

  /** An error of a statement on this connection, as far as more is known of it than the server says. */
  explain(error: unknown, client: PoolClient): unknown {
    const reason = this.#ended.get(client)
    if (reason !== undefined && isConnectionError(error) && !wasNeverSent(error)) return reason
    if (isTimeUp(error)) return new Error(timeUp, { cause: error })
    this.noteRefusal(error)
    if (errorCode(error) !== lockNotAvailable || !wasCancelled(error)) return error
    return withCause(problems.locked({ what: this.#whatIsLocked(client) }), error)
  }

  /** An error of a statement, or of a connection that could not be made. */
  noteRefusal(error: unknown): void {
    if (hasNoLockRoom(error)) void this.#makeRoom()
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
    this.#stopWarming()
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
    const { who, remedy } = clientOf({ pid: wait.blocker, name: wait.blockerName }, this.#pluginOf)
    return `${who} keeps ${wait.table ?? 'what is needed'} locked: try again, and ${remedy}`
  }

  readonly #pluginOf = (pid: number): string | undefined => this.#guarded.get(pid)?.guarded.plugin

  /** While they have been answered once on its connection, they are also when somebody has the catalogs locked. */
  async #warm(): Promise<void> {
    try {
      await this.#ask()
      await this.signal(0, 'cancel')
      await this.signal(0, 'terminate')
      await this.#counted()
    } catch (error) {
      this.parts.log.debug({ err: error }, 'who waits for locks could not be prepared to be asked')
    }
  }

  async #ask(): Promise<readonly SeenWait[]> {
    return await this.parts.session.query<SeenWait>(
      lockWaitsText,
      [[...this.#guarded.keys()]],
      'busbar.waits'
    )
  }

  async #counted(): Promise<readonly LockCount[]> {
    return await this.parts.session.query<LockCount>(lockCountsText, [], 'busbar.lock-counts')
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    const { session, log, isQuiet } = this.parts
    if (isQuiet()) {
      this.#waits.clear()
      this.#times.clear()
      return
    }
    this.#isLooking = true
    try {
      await session.connected()
      this.#note(await this.#names.added(await this.#ask()))
    } catch (error) {
      log.debug({ err: error }, 'who waits for locks could not be asked')
      if (errorCode(error) === lockNotAvailable) this.#endLongest()
    } finally {
      this.#isLooking = false
    }
  }

  /** Nobody can be asked who has the catalogs locked. It must have been in a transaction for as long as that was waited for. */
  #endLongest(): void {
    const found = longestBusy(
      [...this.#guarded.values()].map(one => ({ ...one, since: one.guarded.busySince(one.client) }))
    )
    this.parts.log.warn(
      { plugin: found?.guarded.plugin },
      'system catalogs of the database are locked, and who has them cannot be asked: a plugin that has been in a transaction for longest is ended'
    )
    found?.guarded.end(found.client, { kind: 'blind' }, 1)
  }

  /** Who has most locks is named; and ended, when it is a plugin of this process. */
  async #makeRoom(): Promise<void> {
    const now = performance.now()
    // Of all that have just been refused, one looks.
    if (now - this.#roomMadeAt < this.parts.everyMs) return
    this.#roomMadeAt = now
    const { log } = this.parts
    try {
      const most = mostLocks(await this.#counted(), this.#pluginOf)
      if (most === undefined) return
      const { who, remedy } = clientOf(most, this.#pluginOf)
      log.warn(
        { process: most.pid, locks: most.locks },
        `PostgreSQL has no room for more locks, of which ${who} has most: ${remedy}, or raise max_locks_per_transaction`
      )
      const found = this.#guarded.get(most.pid)
      found?.guarded.end(found.client, { kind: 'locks', locks: most.locks }, 1)
    } catch (error) {
      log.warn({ err: error }, 'PostgreSQL has no room for more locks, and who has them could not be asked')
    }
  }

  #note(seen: readonly LockWait[]): void {
    this.#looks++
    const waits = behindWaits(seen, pid => this.#guarded.has(pid))
    for (const wait of waits) this.#waits.set(wait.waiting, { wait, look: this.#looks })
    for (const [pid, { look }] of this.#waits)
      if (look <= this.#looks - rememberedLooks) this.#waits.delete(pid)
    const counted = waits.flatMap(wait => {
      const guarded = this.#guarded.get(wait.blocker)?.guarded
      if (!this.#counts(wait, guarded)) return []
      return { wait, whose: guarded ?? wait.blocker, limitMs: guarded?.limitMs ?? reportAfterMs }
    })
    for (const { wait, whose, times } of this.#times.note(counted, performance.now())) {
      const client = this.#guarded.get(wait.blocker)?.client
      if (typeof whose !== 'number' && client !== undefined) whose.end(client, { kind: 'waits', wait }, times)
      else if (times === 1)
        this.parts.log.warn({ process: wait.blocker }, `statements wait for a lock: ${this.#sentence(wait)}`)
    }
  }

  #counts(wait: LockWait, guarded: Guarded | undefined): boolean {
    const { waiting, waitingName } = wait
    const isPlatforms =
      !this.#guarded.has(waiting) && (isPlatformCalled(waitingName) || this.parts.isOurs(waiting))
    return guarded === undefined ? isPlatforms : guarded.minds(wait, isPlatforms)
  }

  /** Whether the one who waits is the plugin itself. */
  isOwn({ waiting, waitingName }: LockWait, plugin: string): boolean {
    return this.#pluginOf(waiting) === plugin || waitingName === connectionName(plugin)
  }
}
