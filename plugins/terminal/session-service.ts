import { randomBytes, randomUUID } from 'node:crypto'
import type { ContainerRuntime } from 'busbar/api/containers'
import {
  type AuditLog,
  type Bus,
  type Clock,
  type Database,
  type DuplexSocket,
  isProblem,
  type Log,
  type ProjectId,
  type SessionCaller,
  type SocketRequest
} from 'busbar/sdk'
import { requireShell, servingContainer } from './container-target.js'
import type { EndReason } from './end-reason.js'
import { LiveSession } from './live-session.js'
import { isRecent, overdueReason, recentTimes, unattendedMs } from './overdue.js'
import { problems } from './problems.js'
import type { TerminalSession } from './schemas.js'
import type { SessionEnds } from './session-ends.js'
import type { SessionRow, SessionStore } from './session-store.js'
import type { Settings } from './settings.js'
import { shellOf } from './shells.js'

const lookEveryMs = 5_000
/** Until the client says how large its window is. */
const firstSize = { columns: 80, rows: 24 }
/** The exit code of what was killed. */
const killedCode = 137
const stoppingLooks = 5
const stoppingLookMs = 200
/** "End the sessions of this application", sent to every process. */
const endTopic = 'end'

interface ServiceParts {
  readonly db: Database
  readonly audit: AuditLog
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly runtime: ContainerRuntime
  readonly store: SessionStore
  readonly ends: SessionEnds
  readonly settings: Settings
  /** Of this run of the plugin. */
  readonly processId: string
  /** Aborts when the plugin stops. */
  readonly signal: AbortSignal
}

interface Held {
  readonly row: SessionRow
  readonly live: LiveSession
  readonly unwatch: () => void
}

/** What is to end, in whichever process it runs. */
interface EndOrder {
  readonly applicationId: string
  readonly reason: EndReason
  /** Those in this container go on. */
  readonly exceptContainerId?: string
}

/** Terminal sessions: made, attached to, and ended. Each runs in the process that its first socket came to. */
export class SessionService {
  readonly #held = new Map<string, Held>()
  /** Ends that the database was not there for. */
  readonly #unrecorded = new Map<string, { readonly row: SessionRow; readonly reason: EndReason }>()
  /** Ends that are under way. */
  readonly #ending = new Set<Promise<void>>()

  constructor(private readonly parts: ServiceParts) {}

  /** Follows what ends sessions, until the returned function is called: that ends those of this process. */
  start(): () => Promise<void> {
    const { bus, clock, log } = this.parts
    const stops = [
      bus.onSignal(endTopic, order => this.#obey(JSON.parse(order) as EndOrder)),
      clock.every(lookEveryMs, async () => {
        await this.#look().catch((error: unknown) =>
          log.warn({ err: error }, 'terminal sessions could not be looked at; it is tried again')
        )
      })
    ]
    return async () => {
      for (const stop of stops) stop()
      for (const held of this.#held.values()) this.#end(held, 'plugin-stopped')
      await Promise.all(this.#ending)
    }
  }

  /** Makes a session. Nothing runs before somebody attaches to it. */
  async create(
    target: { readonly projectId: ProjectId; readonly applicationId: string; readonly shell?: string | null },
    who: { readonly caller: SessionCaller; readonly ip: string; readonly signal: AbortSignal }
  ): Promise<TerminalSession> {
    const { runtime, store, clock, settings } = this.parts
    const { caller, ip, signal } = who
    const containerId = await servingContainer(this.parts, target.projectId, target.applicationId)
    const shell = shellOf(target.shell)
    const id = randomBytes(16).toString('hex')
    const { user } = caller
    const limit = settings.max_sessions_per_user
    const isMade = await store.create(
      {
        id,
        user_id: user.id,
        user_email: user.email,
        user_username: user.username,
        login_session_id: caller.sessionId,
        ip_address: ip,
        project_id: target.projectId,
        application_id: target.applicationId,
        container_id: containerId,
        terminal_id: randomUUID().replaceAll('-', ''),
        shell,
        created_at: clock.now()
      },
      limit
    )
    if (!isMade)
      throw problems.limitReached({
        limit,
        remedy: `end one of your ${limit} sessions with exit; one that nobody is attached to ends after a minute`
      })
    try {
      await requireShell(runtime, containerId, shell, signal)
    } catch (error) {
      await store.remove(id)
      throw error
    }
    return { session_id: id, shell }
  }

  /** Before the upgrade: 404 for whoever is not who made it, 409 while somebody is attached. The first one starts the shell. */
  async accept(request: SocketRequest): Promise<void> {
    const { store, clock, processId } = this.parts
    const { params, caller } = request
    const row = await store.find(params.sessionId ?? '')
    if (
      row === undefined ||
      caller.kind !== 'session' ||
      row.login_session_id !== caller.sessionId ||
      row.user_id !== caller.user.id ||
      row.ended_at !== null ||
      (row.opened_at === null && !isRecent(row.created_at, recentTimes(clock.now(), unattendedMs)))
    )
      throw problems.notFound()
    await request.requireProject(row.project_id, 'editor')
    if (row.opened_at === null) {
      await this.#open(row, request)
      return
    }
    const held = this.#held.get(row.id)
    if (held === undefined && row.process_id !== processId) throw problems.elsewhere()
    // It is being opened, or has ended in this moment.
    if (held === undefined || held.live.isTaken) throw problems.attached()
    held.live.reserve(request)
  }

  async attach(socket: DuplexSocket, request: SocketRequest): Promise<void> {
    const held = this.#held.get(request.params.sessionId ?? '')
    await held?.live.attach(socket, request)
  }

  /** In every process; resolves before they have ended. */
  async endOf(order: EndOrder): Promise<void> {
    await this.parts.bus.signal(endTopic, JSON.stringify(order))
  }

  async #open(row: SessionRow, request: SocketRequest): Promise<void> {
    const { store, runtime, clock, processId, signal } = this.parts
    if (!(await store.open(row.id, processId, clock.now()))) throw problems.attached()
    try {
      const terminal = await runtime.openTerminal(row.container_id, [row.shell], {
        terminalId: row.terminal_id,
        size: firstSize,
        signal
      })
      const live = new LiveSession(terminal, clock)
      live.reserve(request)
      const held: Held = {
        row,
        live,
        unwatch: request.watchAccess(() => this.#end(held, 'access-lost'))
      }
      this.#held.set(row.id, held)
      void this.#follow(held)
      // It may have been stopped meanwhile, and then nobody else would end it.
      if (signal.aborted) this.#end(held, 'plugin-stopped')
    } catch (error) {
      await this.#finish(row)
      throw isProblem(error) && error.code === 'E_CONTAINER_PROGRAM'
        ? problems.notStarted({ reason: error.message })
        : error
    }
  }

  /** Until nothing more is written. */
  async #follow(held: Held): Promise<void> {
    await held.live.read().catch((error: unknown) => {
      this.parts.log.error({ err: error, session: held.row.id }, 'a terminal could not be read')
    })
    if (held.live.over === undefined) this.#end(held, await this.#whyItEnded(held))
  }

  /** One whose shell could not be started, or of which that is not known. */
  async #finish(row: SessionRow): Promise<void> {
    if (!(await this.#record(row, 'not-started'))) return
    await this.parts.ends.clear(row).catch(() => {})
  }

  /** The output of a program ends with it, with its container, and with the engine. */
  async #whyItEnded({ row, live }: Held): Promise<EndReason> {
    const { runtime, clock, signal } = this.parts
    try {
      const code = await live.terminal.exitCode()
      // With a container its programs are killed, a moment before the engine says that it does not run.
      const looks = code === null || code === killedCode ? stoppingLooks : 1
      for (let look = 1; ; look++) {
        const state = await runtime.inspect(row.container_id)
        if (state?.status !== 'running') return 'container-stopped'
        if (look === looks) return 'exited'
        await clock.sleep(stoppingLookMs, signal)
      }
    } catch {
      return signal.aborted ? 'plugin-stopped' : 'engine-lost'
    }
  }

  #obey({ applicationId, reason, exceptContainerId }: EndOrder): void {
    for (const held of this.#held.values())
      if (held.row.application_id === applicationId && held.row.container_id !== exceptContainerId)
        this.#end(held, reason)
  }

  /** One look for all sessions of the process. */
  async #look(): Promise<void> {
    const { clock, settings, store, processId } = this.parts
    const now = clock.elapsed()
    for (const held of this.#held.values()) {
      const reason = overdueReason(held.live, now, settings.idle_minutes * 60_000)
      if (reason !== null) this.#end(held, reason)
    }
    for (const { row, reason } of this.#unrecorded.values()) await this.#record(row, reason)
    if (this.#held.size > 0) await store.beat(processId)
  }

  #end(held: Held, reason: EndReason): void {
    if (held.live.over !== undefined) return
    held.live.close(reason)
    held.unwatch()
    const ending = this.#stop(held, reason).finally(() => {
      this.#held.delete(held.row.id)
      this.#ending.delete(ending)
    })
    this.#ending.add(ending)
  }

  /** Never rejects: what cannot be done now is left to `Leftovers`, and to the next look. */
  async #stop({ row, live }: Held, reason: EndReason): Promise<void> {
    const { runtime, store, log } = this.parts
    const stopping = live.terminal
      .end()
      // It may have ended with its container: then there is nothing to do.
      .catch(async () => await runtime.endTerminal(row.container_id, row.terminal_id))
      .then(
        () => true,
        (error: unknown) => {
          log.warn({ err: error, session: row.id }, 'a terminal could not be ended; it is tried again')
          return false
        }
      )
    const [isStopped, isRecorded] = await Promise.all([stopping, this.#record(row, reason)])
    // One that stays is cleared by `Leftovers`.
    if (isStopped && isRecorded) await store.remove(row.id).catch(() => {})
  }

  async #record(row: SessionRow, reason: EndReason): Promise<boolean> {
    try {
      await this.parts.ends.record(row, reason)
      this.#unrecorded.delete(row.id)
      return true
    } catch (error) {
      this.parts.log.warn(
        { err: error, session: row.id },
        'the end of a terminal session could not be recorded; it is tried again'
      )
      this.#unrecorded.set(row.id, { row, reason })
      return false
    }
  }
}
