import type { SwitchProof, TrafficSwitch } from 'busbar/api/deployments'
import type {
  ApplicationTargets,
  HostReport,
  ProxyAbility,
  ProxyDriver,
  ProxyRoute,
  ReconcilerStatus,
  RoutingTable
} from 'busbar/api/domains'
import { type Clock, createKeyedMutex, type Log } from 'busbar/sdk'
import { Refused } from './admin-client.js'
import { type Caddy, CaddyFault } from './caddy.js'
import { refreshMs, streamDelay } from './config/app-routes.js'
import { type Built, caddyConfig } from './config/caddy-config.js'
import type { CaddyOptions } from './config/caddy-options.js'
import { canonical } from './config/json.js'
import { accessLogName, ownLogName } from './config/logging.js'
import { serverName } from './config/marks.js'
import { tlsByHost } from './config/tls.js'
import type { Zone } from './dns/zone.js'
import { handlersFault } from './handlers.js'
import { lastLines } from './log/file-tail.js'
import type { TlsLog } from './log/tls-log.js'
import { ownershipOf } from './ownership.js'
import { driftOf, noDrift } from './reconcile.js'
import { refusedRoutes, sampleRoute } from './refused-routes.js'
import { SwitchMeter } from './switch-meter.js'

const intervalSeconds = 30
/** How often it is looked whether Caddy is there, and has the configuration that it was given. */
const heartbeatMs = 1000
const firstRetryMs = 100
const longestRetryMs = 10_000
/** When one that did not start is tried again. */
const firstStartRetryMs = 2000
const longestStartRetryMs = 300_000
/** So long Caddy may be away before another driver takes its place. */
const patienceMs = 6000
/** An answer may be on its way while another one is given, and counts for Caddy from when it has come. */
const inFlightMs = 400
const lookMs = 5
const drainLookMs = 50
/** In which another driver is put in charge, when this plugin is turned off. */
const handOverMs = 3000

/** What is known before Caddy is asked. */
export type GivenOptions = Omit<CaddyOptions, 'admin' | 'keepsStreams'>

interface DriverParts {
  readonly caddy: Caddy
  readonly zone: Zone
  readonly clock: Clock
  readonly log: Log
  readonly options: GivenOptions
  readonly tlsLog: TlsLog | null
  /** Where it is reached from this machine. */
  readonly reachedAt: string
}

interface Served {
  readonly table: RoutingTable
  readonly built: Built
  /** The configuration as JSON, to compare with the next one. */
  readonly text: string
}

/** Hostnames by Caddy. */
export class CaddyDriver implements ProxyDriver {
  readonly name = 'Caddy'
  readonly abilities: readonly ProxyAbility[] = [
    'tls',
    'acme',
    'basic_auth',
    'headers',
    'ip_allowlist',
    'redirect',
    'advanced_config'
  ]
  readonly lackRemedy =
    'leave it out, or have the platform serve domains by the built-in proxy (BUSBAR_CADDY_PROGRAM=none), which has no TLS'
  readonly reconciler = {
    status: (): ReconcilerStatus => this.#status,
    reconcile: async (): Promise<ReconcilerStatus> => await this.#inTurn(async () => await this.#reconcile())
  }

  /** What is to be served; undefined while this driver is not in charge. */
  #wanted: RoutingTable | undefined
  #served: Served | undefined
  /** Why Caddy cannot serve for us. Undefined: it is not known yet. */
  #fault: string | null | undefined
  /** Since when Caddy has been away, by the monotonic clock. */
  #awaySince: number | undefined
  /** The newest reconcile has met what only an operator can change. */
  #isHopeless = false
  #retryMs = firstRetryMs
  #retryAt = 0
  #failedStarts = 0
  #queued: Promise<void> | undefined
  /** Routes that Caddy has refused, with the handlers that it refused. */
  readonly #refused = new Map<string, { readonly handlers: string; readonly reason: string }>()
  /** Until Caddy refuses to be told. */
  #keepsStreams = true
  readonly #turns = createKeyedMutex()
  readonly #stops: Array<() => void> = []
  readonly #released = new Set<() => void>()
  #isClosed = false
  readonly #end = new AbortController()
  #status: ReconcilerStatus = {
    intervalSeconds,
    lastRunAt: null,
    lastDurationMs: 0,
    lastAdded: 0,
    lastUpdated: 0,
    lastRemoved: 0,
    lastError: null,
    runCount: 0,
    totalDrift: 0
  }

  constructor(private readonly parts: DriverParts) {}

  /** While Caddy cannot serve, another driver is to. */
  get fallback(): true | undefined {
    return this.#fault === null ? undefined : true
  }

  /** Why nothing is served by Caddy; null where it is, or could be. */
  fault(): string | null {
    return this.#fault ?? null
  }

  /** Looks whether Caddy can serve, and follows it from then on. */
  async open(): Promise<void> {
    await this.#look()
    const { clock } = this.parts
    this.#stops.push(
      clock.every(heartbeatMs, async () => await this.#inTurn(async () => await this.#beat())),
      clock.every(intervalSeconds * 1000, async () => {
        if (this.#served !== undefined) await this.reconciler.reconcile()
      })
    )
  }

  /** For good. Where it serves, it goes on for a moment, in which another driver may be put in charge. */
  async close(): Promise<void> {
    if (this.#served !== undefined) {
      const { clock } = this.parts
      await Promise.race([
        clock.sleep(handOverMs, this.#end.signal).catch(() => {}),
        new Promise<void>(resolve => this.#released.add(resolve))
      ])
    }
    this.#isClosed = true
    this.#end.abort()
    for (const stop of this.#stops.splice(0)) stop()
    await this.release()
  }

  /** Its process has ended by itself. */
  ended(): void {
    this.parts.log.warn('Caddy has ended and is started again')
    void this.#inTurn(async () => await this.#beat())
  }

  async load(table: RoutingTable): Promise<void> {
    this.#wanted = table
    // Those of before are asked for until this table is loaded, and longer if it cannot be.
    this.parts.zone.serve([...table.routes, ...(this.#served?.table.routes ?? [])])
    // What comes while one waits for its turn is served with it.
    this.#queued ??= this.#inTurn(async () => {
      this.#queued = undefined
      await this.#apply()
    })
    await this.#queued
  }

  async retarget(applicationId: string, targets: ApplicationTargets | null): Promise<void> {
    await this.#seen(this.parts.zone.retarget(applicationId, targets))
  }

  async switchTo(applicationId: string, targets: ApplicationTargets): Promise<TrafficSwitch | null> {
    const { zone, caddy, clock } = this.parts
    if (this.#served === undefined || !zone.isServed(applicationId)) {
      await this.retarget(applicationId, targets)
      return null
    }
    const before = zone.dialled(applicationId)
    const meter = await SwitchMeter.begin(this.#logFile(accessLogName), this.#hostnamesOf(applicationId))
    await this.#seen(zone.retarget(applicationId, targets))
    const left = before.filter(address => !zone.dialled(applicationId).includes(address))
    return {
      drain: async (timeoutMs): Promise<SwitchProof> => {
        const startedAt = clock.elapsed()
        let cut = 0
        do {
          const underWay = await caddy.client.underWay().catch(() => new Map<string, number>())
          cut = left.reduce((sum, address) => sum + (underWay.get(address) ?? 0), 0)
          await meter.look()
          if (cut === 0) break
          await clock.sleep(Math.min(drainLookMs, Math.max(1, timeoutMs - (clock.elapsed() - startedAt))))
        } while (clock.elapsed() - startedAt < timeoutMs)
        return { ...(await meter.end()), drainMs: Math.round(clock.elapsed() - startedAt), cut }
      }
    }
  }

  async release(): Promise<void> {
    this.#wanted = undefined
    await this.#inTurn(async () => {
      const wasServed = this.#served !== undefined
      this.#served = undefined
      this.#awaySince = undefined
      if (wasServed) await this.parts.caddy.end()
    })
    for (const resolve of this.#released) resolve()
    this.#released.clear()
  }

  async report(hostname: string): Promise<HostReport> {
    const { options, reachedAt, tlsLog } = this.parts
    const served = this.#served
    if (served === undefined)
      return { fault: this.fault() ?? 'Caddy is not in charge of hostnames now', tlsAt: null, tlsFault: null }
    const mode = tlsByHost(served.table).get(hostname)?.mode ?? 'off'
    return {
      fault: this.fault() ?? served.built.hostFaults.get(hostname) ?? null,
      tlsAt: mode === 'off' ? null : { host: reachedAt, port: options.httpsPort },
      tlsFault: mode === 'automatic' ? ((await tlsLog?.faultOf(hostname)) ?? null) : null,
      ...(mode === 'automatic' && options.issuer.kind === 'internal' && { localAuthority: true })
    }
  }

  ports(): { readonly http: number | null; readonly https: number | null } {
    const { httpPort, httpsPort } = this.parts.options
    return this.#served === undefined ? { http: null, https: null } : { http: httpPort, https: httpsPort }
  }

  async restart(): Promise<void> {
    await this.#inTurn(async () => {
      const served = this.#served
      if (served === undefined)
        throw new CaddyFault(this.fault() ?? 'Caddy is not in charge of hostnames now')
      await this.parts.caddy.restart(served.built.config)
    })
  }

  async logs(lines: number): Promise<string> {
    const path = this.#logFile(ownLogName)
    const written = path === null ? [] : await lastLines(path, lines)
    return (written.length === 0 ? this.parts.caddy.said().slice(-lines) : written).join('\n')
  }

  /** What is wrong with handlers of `advanced_config`; null where Caddy takes them. */
  async checkHandlers(handlers: readonly object[]): Promise<string | null> {
    const fault = handlersFault(handlers)
    if (fault !== null) return fault
    const { caddy } = this.parts
    if (caddy.validate === undefined || this.#fault !== null) return null
    const alone = { routes: [sampleRoute(handlers)], certificates: [], platform: null, trustedProxies: [] }
    const admin = await caddy.adminBlock()
    let reason = await caddy.validate(this.#build(alone, admin).config)
    if (reason !== null && this.#isOlder(reason))
      reason = await caddy.validate(this.#build(alone, admin).config)
    return reason === null ? null : `Caddy refuses it: ${reason}`
  }

  /** One after another: whatever asks Caddy to change. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    return this.#turns.take('caddy', run)
  }

  /**
   * Resolves when Caddy leads no new request by an answer of before: when it has asked again, which it does under a lock that each
   * request waits for whose answer is too old, or when what it knows has become too old without a request.
   */
  async #seen(names: readonly string[]): Promise<void> {
    const { zone, clock } = this.parts
    if (this.#served === undefined) return
    const before = new Map(
      names.flatMap(name => {
        const asked = zone.asked(name)
        return asked === undefined ? [] : [[name, asked] as const]
      })
    )
    const isKnown = (): boolean =>
      [...before].some(
        ([name, { at, times }]) =>
          zone.asked(name)?.times === times && clock.elapsed() < at + refreshMs + inFlightMs
      )
    while (isKnown()) await clock.sleep(lookMs)
  }

  async #look(): Promise<void> {
    const fault = await this.parts.caddy.fault().catch((error: Error) => error.message)
    if (fault !== this.#fault && fault !== null)
      this.parts.log.warn({ reason: fault }, 'Caddy cannot serve hostnames')
    this.#fault = fault
  }

  async #apply(): Promise<void> {
    const table = this.#wanted
    if (table === undefined || this.#isClosed) return
    if (this.#served === undefined) {
      await this.#look()
      if (typeof this.#fault === 'string') throw new CaddyFault(this.#fault)
    }
    try {
      await this.#serve(table)
      this.#fault = null
      this.#awaySince = undefined
      this.#retryMs = firstRetryMs
      this.#failedStarts = 0
    } catch (error) {
      // What concerns all of it is left to a driver that can.
      if (this.#served === undefined || error instanceof CaddyFault) {
        this.#fault = error instanceof Error ? error.message : String(error)
        this.#retryAt =
          this.parts.clock.elapsed() +
          Math.min(longestStartRetryMs, 2 ** this.#failedStarts++ * firstStartRetryMs)
      }
      throw error
    }
  }

  /** `isForced`: whatever is thought to be loaded. */
  async #serve(table: RoutingTable, isForced = false): Promise<void> {
    const { caddy } = this.parts
    const admin = await caddy.adminBlock()
    for (const { id, handlers } of table.routes)
      if (this.#refused.get(id)?.handlers !== canonical(handlers)) this.#refused.delete(id)
    for (;;) {
      const built = this.#build(table, admin)
      // Both were made in the same order.
      if (isForced || JSON.stringify(built.config) !== this.#served?.text) {
        const error = await caddy.serve(built.config).catch((thrown: Error) => thrown)
        if (error instanceof Error) {
          const isKnownNow =
            error instanceof Refused &&
            (this.#isOlder(error.message) || (await this.#findRefused(table, admin, error)))
          if (!isKnownNow) throw error
          continue
        }
      }
      this.#serves(table, built)
      return
    }
  }

  /** It was refused for what only newer ones know, which it is not told from now on. */
  #isOlder(reason: string): boolean {
    if (!this.#keepsStreams || !reason.includes(streamDelay)) return false
    this.#keepsStreams = false
    return true
  }

  #serves(table: RoutingTable, built: Built): void {
    this.#served = { table, built, text: JSON.stringify(built.config) }
    if (this.#wanted === table) this.parts.zone.serve(table.routes)
  }

  #build(table: RoutingTable, admin: Awaited<ReturnType<Caddy['adminBlock']>>): Built {
    const refused = new Map([...this.#refused].map(([id, { reason }]) => [id, reason]))
    return caddyConfig(table, { ...this.parts.options, admin, keepsStreams: this.#keepsStreams }, refused)
  }

  /** Handlers that somebody has written are all that Caddy can refuse of single routes. False: it is something else, or known already. */
  async #findRefused(
    table: RoutingTable,
    admin: Awaited<ReturnType<Caddy['adminBlock']>>,
    { message }: Refused
  ): Promise<boolean> {
    const { caddy, log } = this.parts
    const suspects = table.routes.filter(({ id, handlers }) => handlers.length > 0 && !this.#refused.has(id))
    if (suspects.length === 0) return false
    log.warn(
      { reason: message, routes: suspects.length },
      'Caddy refuses the configuration; looking for the routes'
    )
    const others = table.routes.filter(route => !suspects.includes(route))
    const trial = async (routes: readonly ProxyRoute[]): Promise<string | null> => {
      const { config } = this.#build({ ...table, routes: [...others, ...routes] }, admin)
      if (caddy.validate !== undefined) return await caddy.validate(config)
      return await caddy.serve(config).then(
        () => null,
        (error: unknown) => {
          if (error instanceof Refused) return error.message
          throw error
        }
      )
    }
    if ((await trial([])) !== null) return false
    const found = await refusedRoutes(suspects, trial)
    for (const [id, reason] of found) {
      const handlers = canonical(suspects.find(route => route.id === id)?.handlers ?? [])
      this.#refused.set(id, {
        handlers,
        reason: `Caddy refuses its advanced_config (${reason.slice(0, 400)}): correct it`
      })
    }
    return found.size > 0
  }

  /** Looks whether Caddy is there and serves what it was given, and repairs what is not. */
  async #beat(): Promise<void> {
    const { caddy, clock, log } = this.parts
    if (this.#isClosed) return
    if (this.#served === undefined) {
      // Not in charge: whether it could be.
      if (this.#fault !== null && clock.elapsed() >= this.#retryAt) {
        this.#retryAt = clock.elapsed() + 2 * heartbeatMs
        await this.#look()
      }
      return
    }
    const mark = await caddy.client.mark().catch(() => undefined)
    if (mark === this.parts.options.mark) {
      this.#awaySince = undefined
      this.#retryMs = firstRetryMs
      return
    }
    this.#awaySince ??= clock.elapsed()
    const { lastError } = await this.#reconcile()
    if (lastError === null) {
      this.#awaySince = undefined
      this.#fault = null
      return
    }
    if (this.#isHopeless || clock.elapsed() - this.#awaySince > patienceMs) {
      this.#fault = lastError
      log.error({ reason: lastError }, 'Caddy does not come back')
    } else {
      const wait = this.#retryMs
      this.#retryMs = Math.min(longestRetryMs, this.#retryMs * 2)
      void clock.sleep(wait, this.#end.signal).then(
        async () => await this.#inTurn(async () => await this.#beat()),
        () => {}
      )
    }
  }

  async #reconcile(): Promise<ReconcilerStatus> {
    const { caddy, clock, options, log } = this.parts
    const startedAt = clock.elapsed()
    let drift = noDrift
    let lastError: string | null = null
    const served = this.#served
    try {
      if (served === undefined)
        throw new CaddyFault(this.fault() ?? 'Caddy is not in charge of hostnames now')
      const loaded = await caddy.client.config().catch(() => null)
      if (ownershipOf(loaded, options.mark) === 'foreign')
        throw new CaddyFault(
          'Caddy has a configuration that is not of this platform, which leaves it alone: remove that one, or set CADDY_ADMIN_URL to another Caddy'
        )
      drift = driftOf(loaded, served.built.config, serverName)
      if (drift !== noDrift) {
        log.warn({ ...drift }, 'Caddy served something else than it was given')
        await this.#serve(served.table, true)
      }
    } catch (error) {
      lastError = error instanceof Error ? error.message : String(error)
      this.#isHopeless = error instanceof CaddyFault
    }
    this.#status = {
      intervalSeconds,
      lastRunAt: clock.now().toISOString(),
      lastDurationMs: Math.round(clock.elapsed() - startedAt),
      lastAdded: drift.added,
      lastUpdated: drift.updated,
      lastRemoved: drift.removed,
      lastError,
      runCount: this.#status.runCount + 1,
      totalDrift:
        this.#status.totalDrift + (lastError === null ? drift.added + drift.updated + drift.removed : 0)
    }
    return this.#status
  }

  #hostnamesOf(applicationId: string): ReadonlySet<string> {
    const routes = this.#served?.table.routes ?? []
    return new Set(routes.flatMap(route => (route.applicationId === applicationId ? [route.hostname] : [])))
  }

  #logFile(name: string): string | null {
    const { logDirectory, accessLog } = this.parts.options
    return logDirectory === null || (name === accessLogName && !accessLog) ? null : `${logDirectory}/${name}`
  }
}
