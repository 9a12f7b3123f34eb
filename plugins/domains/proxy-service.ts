import type { PlatformPart } from 'busbar/api/platform'
import { bounded } from 'busbar/sdk'
import type { ProxyDriver, ReconcilerStatus } from './api.js'
import type { HostLooks } from './host-looks.js'
import { problems } from './problems.js'
import type { LoadRun, Routing } from './routing.js'
import type { DashboardTls, ReconcilerAnswer } from './schemas.js'
import type { ServerAddress, ServerAddresses } from './server-address.js'
import type { Settings } from './settings.js'

interface ProxyServiceParts {
  readonly routing: Routing
  readonly looks: HostLooks
  readonly addresses: ServerAddresses
  readonly settings: Settings
  readonly startedAt: Date
}

/** Less than a request has. */
const reconcileMs = 20_000
const noRun = { added: 0, updated: 0, removed: 0, durationMs: 0, error: null }

/** The proxy as an operator sees it. */
export class ProxyService {
  /** What reconciliations have found of a proxy in this process. */
  #drift = 0

  constructor(private readonly deps: ProxyServiceParts) {}

  async status(): Promise<ReconcilerAnswer> {
    const { routing, startedAt } = this.deps
    const driver = routing.driver()
    if (driver !== undefined && routing.runs() === undefined) await routing.refresh()
    const { last, count } = routing.runs() ?? { last: { ...noRun, at: startedAt }, count: 0 }
    if (driver === undefined) return ofLoads({ last: { ...last, error: noProxy }, count }, this.#drift)
    return driver.reconciler === undefined
      ? ofLoads({ last, count }, this.#drift)
      : reconcilerAnswer(driver.reconciler.status(), last)
  }

  /** Reads what is stored anew, gives it to the driver, and has that compare what it serves. */
  async reconcile(): Promise<ReconcilerAnswer> {
    const { routing } = this.deps
    const driver = routing.driver()
    if (driver === undefined) throw problems.noDriver()
    const last = await routing.reload()
    const count = routing.runs()?.count ?? 0
    if (last === undefined) throw problems.noDriver()
    const { reconciler } = driver
    if (reconciler !== undefined)
      return await bounded(async () => await reconciler.reconcile(), {
        ms: reconcileMs,
        what: `the proxy driver ${driver.name}`
      }).then(
        told => reconcilerAnswer(told, last),
        (error: unknown) => ({ ...reconcilerAnswer(reconciler.status(), last), last_error: reasonOf(error) })
      )
    this.#drift += last.added + last.updated + last.removed
    return ofLoads({ last, count }, this.#drift)
  }

  /** The proxy as a part of the installation. */
  parts(): readonly PlatformPart[] {
    const { routing } = this.deps
    const driver = routing.driver()
    return [
      {
        id: driver === undefined ? 'proxy' : partId(driver),
        name: driver === undefined ? 'Proxy' : capitalised(driver.name),
        description: 'Serves the hostnames of applications, and of the platform',
        fault: async () => (driver === undefined ? noProxy : routing.fault()),
        ...(driver?.restart !== undefined && { restart: async () => await driver.restart?.() }),
        ...(driver?.logs !== undefined && {
          logs: async (lines: number) => (await driver.logs?.(lines)) ?? ''
        })
      }
    ]
  }

  async serverAddress(): Promise<ServerAddress> {
    return await this.deps.addresses.read()
  }

  /** How the platform itself is served by its hostname, looked at now. */
  async dashboardTls(): Promise<DashboardTls> {
    const { routing, looks, settings } = this.deps
    const { dashboard_domain: domain } = settings
    if (domain === undefined) return { ...noDashboard }
    const mode = routing.platform()?.tls.mode ?? settings.dashboard_ssl_mode ?? 'automatic'
    const { state } = await looks.look(domain, mode)
    return {
      domain,
      ssl_mode: mode,
      tls_status: state.tls_status,
      tls_issuer: state.tls_issuer ?? '',
      tls_not_after: state.tls_not_after,
      tls_error: state.tls_error ?? ''
    }
  }
}

const noProxy = 'no proxy driver is on: enable the plugin "proxy-forwarder", or one that brings a driver'

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** One word, as the drivers of programs are called after them; `proxy` for one that is none. */
const partId = ({ name }: ProxyDriver): string =>
  /^[a-z][a-z0-9-]*$/i.test(name) ? name.toLowerCase() : 'proxy'

/** As the beginning of a line; `the built-in forwarder` is in the middle of sentences. */
function capitalised(name: string): string {
  const bare = name.replace(/^the /, '')
  return bare.charAt(0).toUpperCase() + bare.slice(1)
}

const noDashboard: DashboardTls = Object.freeze({
  domain: '',
  ssl_mode: 'off',
  tls_status: 'disabled',
  tls_issuer: '',
  tls_not_after: null,
  tls_error: ''
})

/** Of a driver that compares by itself. */
const reconcilerAnswer = (told: ReconcilerStatus, loaded: LoadRun): ReconcilerAnswer => ({
  interval_seconds: told.intervalSeconds,
  last_run_at: told.lastRunAt === null ? loaded.at : new Date(told.lastRunAt),
  last_duration_ms: told.lastDurationMs,
  last_added: told.lastAdded,
  last_updated: told.lastUpdated,
  last_removed: told.lastRemoved,
  last_error: told.lastError ?? loaded.error ?? '',
  run_count: told.runCount,
  total_drift: told.totalDrift
})

/** A proxy in this process serves what it was given last: each time that it was given something is a run. */
const ofLoads = (
  { last, count }: { readonly last: LoadRun; readonly count: number },
  drift: number
): ReconcilerAnswer => ({
  interval_seconds: 0,
  last_run_at: last.at,
  last_duration_ms: last.durationMs,
  last_added: last.added,
  last_updated: last.updated,
  last_removed: last.removed,
  last_error: last.error ?? '',
  run_count: count,
  total_drift: drift
})
