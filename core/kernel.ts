import { mkdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { access, healthChecks, type Clock, type Contributions, type CredentialSource, type DormantPlugins, type Instance, type Log, type Operations, type Tx } from 'busbar/sdk'
import { startEmbedded } from '../embedded-postgres/index.js'
import { describeApi } from '../sdk/openapi.js'
import { decideCaller } from './access/decision.js'
import { ProjectAccess } from './access/project-access.js'
import { AuditTrail } from './audit/audit-trail.js'
import { createAuthenticator } from './auth/authenticator.js'
import { CredentialCache } from './auth/credential-cache.js'
import { createCredentials } from './auth/credentials.js'
import { createHub, type Hub } from './bus/hub.js'
import { pluginBus } from './bus/plugin-bus.js'
import { createRelay } from './bus/relay.js'
import { systemClock } from './clock/clock.js'
import { withDeadline } from './clock/waits.js'
import { isLoopback, type Settings } from './config/environment.js'
import { openListener, type Listener } from './database/listener.js'
import { migrate, type MigrationPlan } from './database/migrations.js'
import { pluginDatabase } from './database/plugin-database.js'
import { openPostgres, type Postgres } from './database/postgres.js'
import { EventHub } from './events/events.js'
import { createExec } from './exec/exec.js'
import { Edge } from './http/edge.js'
import { Guard } from './http/guard.js'
import { Idempotency } from './http/idempotency.js'
import { kernelPlugin, type KernelFace } from './http/kernel-routes.js'
import { PluginInstance } from './http/plugin-instance.js'
import { RateLimiter } from './http/rate-limit.js'
import { RouteTable, type TableEntry } from './http/route-table.js'
import { SocketTable } from './http/socket-table.js'
import { acceptUpgrades, hubRecord, socketRoute } from './http/upgrades.js'
import { JobRunner } from './jobs/job-runner.js'
import { Singletons } from './jobs/singleton.js'
import { kernelMigrations } from './kernel-schema.js'
import { createLog, type LineSink } from './log/log.js'
import { createRedactor } from './log/redactor.js'
import type { PluginRoot } from './plugins/discovery.js'
import { PluginStore } from './plugins/plugin-store.js'
import { Reconciler, schemaOf, type ReconcilerOptions } from './plugins/reconciler.js'
import { record } from './plugins/recorder.js'
import { release } from './release.js'
import { createKeyring } from './secrets/keyring.js'
import { secretsFor } from './secrets/secrets.js'
import type { KernelServices } from './services/container.js'
import { ServiceRegistry } from './services/registry.js'

export interface KernelOptions {
  readonly settings: Settings
  readonly roots: readonly PluginRoot[]
  readonly inline?: ReconcilerOptions['inline']
  readonly clock?: Clock
  readonly logDestination?: LineSink
}

/** A running platform. */
export interface Kernel {
  readonly address: AddressInfo
  readonly log: Log
  readonly reconciler: Reconciler
  readonly edge: Edge
  readonly hub: Hub
  readonly jobs: JobRunner
  readonly postgres: Postgres
  readonly registry: ServiceRegistry
  /** Stops in the reverse order of the start; what is under way may finish, within limits. */
  close(): Promise<void>
}

const closeLimitMs = 15_000
const maxCachedCredentials = 10_000
const healthEveryMs = 30_000
const sweepEveryMs = 3_600_000
const subscribeLimitMs = 10_000

/**
 * Assembles and starts the platform. Read this to see the system: what there is, what it is made from,
 * and in which order it comes up. `close` goes the same way back.
 */
export async function startKernel ({ settings, roots, inline = [], clock = systemClock(), logDestination }: KernelOptions): Promise<Kernel> {
  const closers: Array<() => Promise<unknown> | void> = []
  const close = async (): Promise<void> => { for (const stop of closers.splice(0).reverse()) await stop() }
  try {
    return await assemble()
  } catch (error) {
    await close().catch(() => {})
    throw error
  }

  async function assemble (): Promise<Kernel> {
    const redactor = createRedactor()
    const log = createLog({ level: settings.logLevel, format: settings.logFormat, redactor, destination: logDestination })
    await mkdir(settings.directory, { recursive: true, mode: 0o711 })
    const keyring = await createKeyring({ directory: settings.directory, environment: process.env, redactor })

    // The database: the first thing up, the last thing down.
    const server = settings.databaseUrl === undefined ? await startEmbedded({ directory: settings.directory, log }) : { url: settings.databaseUrl, stop: async () => {} }
    closers.push(server.stop)
    const postgres = await openPostgres({ url: server.url, log })
    closers.push(async () => { await postgres.close() })
    const listener = await openListener({ postgres, log })
    closers.push(async () => { await listener.close() })
    const runMigrations = async (plans: readonly MigrationPlan[]): Promise<ReadonlyMap<string, Error>> =>
      (await migrate(postgres, plans, { version: release, log })).failed
    await migrateKernel(runMigrations)
    const database = pluginDatabase(postgres, 'kernel')

    // Who may do what.
    const registry = new ServiceRegistry()
    const afterCommit = (tx: Tx, run: () => void): void => { postgres.afterCommit(tx, run) }
    const projects = new ProjectAccess(registry, listener, afterCommit)
    const cache = new CredentialCache(maxCachedCredentials)
    const credentials = createCredentials({ cache, signals: listener, afterCommit })
    const sources = registry.contributions(access.credentials.id) as Contributions<CredentialSource>
    const authenticate = createAuthenticator({ cache, sources, clock, log })
    const limiter = new RateLimiter(clock)
    const guard = new Guard(authenticate, projects, limiter, clock, sources)

    // What is live and what is durable.
    const hub = createHub({
      log, clock, redactor, maxConnectionsPerUser: settings.maxSocketsPerUser, relay: createRelay({ signals: listener, log }),
      authorize: async (channel, id, caller) => await withDeadline(mayListen(projects, channel, id, caller), subscribeLimitMs, 'deciding a subscription')
    })
    projects.watchers.add(() => { hub.recheck() })
    const jobs = new JobRunner({ postgres, log })
    const events = new EventHub(jobs)
    const singletons = new Singletons(postgres)
    const exec = createExec({ log })

    // Where requests come in.
    const edge = new Edge({ settings, guard, projects, log })
    const sockets = new SocketTable()
    closers.push(async () => { await edge.close(closeLimitMs) })

    // What plugs in.
    const audit = new AuditTrail(database, clock, log)
    const idempotency = new Idempotency(database, clock)
    const dormant: DormantPlugins = { borrow: async (point, schema, use) => await reconciler.borrow(point, schema, use) }
    const http = { audit, idempotency, secureCookies: settings.secureCookies }
    const kernelRecords = record(kernelPlugin, { id: 'kernel', builtIn: true })
    let kernelEntries: TableEntry[] = kernelRecords.routes.map(route => ({ record: route, instance: undefined }))
    let description: string | undefined
    const reconciler = new Reconciler({
      http,
      roots,
      inline,
      directory: settings.directory,
      store: new PluginStore(database, clock),
      sockets: { registry, hub, jobs, events, singletons, log, worksJobs: settings.role !== 'api' },
      clock,
      log,
      migrate: runMigrations,
      kernelServices,
      onRoutes: entries => {
        edge.table = new RouteTable([...kernelEntries, ...entries])
        sockets.replace(reconciler.entries.values())
        projects.forgetAll()
        description = undefined
      },
      announce: async message => { await listener.signal(pluginTopic, message) }
    })
    const served = () => [hubRecord, ...sockets.records.map(socketRoute), ...edge.table.entries.filter(isServed).map(entry => entry.record)]
    const operations: Operations = { admitting: caller => served().filter(({ access }) => access.kind !== 'public' && decideCaller(caller, access) === null) }
    const face: KernelFace = {
      version: release,
      reconciler,
      openapi: () => description ??= JSON.stringify(describeApi(served())),
      vitalChecks: {
        database: async () => { await postgres.query('select 1'); return 'ok' },
        keyring: async () => keyring.open(keyring.seal('ok', 'healthz'), 'healthz')
      },
      contributedChecks: registry.contributions(healthChecks.id) as KernelFace['contributedChecks']
    }
    const kernelInstance = await PluginInstance.create({ ...http, plugin: 'kernel', routes: kernelRecords.routes, self: face, log })
    kernelEntries = kernelRecords.routes.map(route => ({ record: route, instance: kernelInstance }))

    closers.push(async () => { await jobs.stop(); await singletons.close() })
    closers.push(async () => { await reconciler.close(); await kernelInstance.drain(closeLimitMs); await exec.close() })
    await reconciler.boot()
    if (settings.role !== 'api') await jobs.start()
    closers.push(listenForChoices(listener, reconciler, log), clock.every(healthEveryMs, async () => { await reconciler.checkHealth() }), clock.every(sweepEveryMs, async () => { await idempotency.sweep() }))
    closers.push(async () => { await hub.close() }, await acceptUpgrades({ edge, guard, hub, log, sockets }))
    const address = await edge.listen()
    singletons.begin()

    return { address, log, reconciler, edge, hub, jobs, postgres, registry, close }

    function kernelServices (id: string, builtIn: boolean): KernelServices {
      const shared = {
        database: pluginDatabase(postgres, schemaOf(id, builtIn)),
        jobs: jobs.for(id),
        events: events.for(id),
        bus: pluginBus({ id, builtIn, hub, signals: listener }),
        secrets: secretsFor(keyring, redactor, id),
        clock,
        exec,
        instance: instanceFacts(id, settings)
      }
      return builtIn ? { ...shared, credentials, projectFacts: projects, audit, dormant, operations } : shared
    }
  }
}

const pluginTopic = 'plugins'
const isServed = ({ instance }: TableEntry): boolean => instance !== undefined

async function migrateKernel (run: (plans: readonly MigrationPlan[]) => Promise<ReadonlyMap<string, Error>>): Promise<void> {
  const failed = await run([{ plugin: 'kernel', schema: 'kernel', migrations: kernelMigrations }])
  for (const error of failed.values()) throw error
}

/** A subscription is decided like a request: caller, then project. */
async function mayListen (projects: ProjectAccess, ...[channel, id, caller]: Parameters<Parameters<typeof createHub>[0]['authorize']>): Promise<boolean> {
  const { access, param } = channel
  if (access.kind === 'public' || decideCaller(caller, access) !== null) return false
  return (await projects.decide(caller, access, param === null ? {} : { [param]: id })).refused === null
}

/** Another process turned a plugin on or off, or reloaded it: this one follows. */
function listenForChoices (listener: Listener, reconciler: Reconciler, log: Log): () => void {
  const follow = (reloaded: string): void => {
    void reconciler.refresh(reloaded).catch((error: unknown) => { log.error({ err: error }, 'following a change of the plugins failed') })
  }
  // What was missed while the connection was down is in the database.
  listener.onReconnect(() => { follow('') })
  return listener.onSignal(pluginTopic, follow)
}

function instanceFacts (id: string, settings: Settings): Instance {
  const path = join(settings.directory, 'data', id)
  return Object.freeze({
    version: release,
    loopbackOnly: isLoopback(settings.host),
    environment: settings.variable,
    directory: async () => {
      await mkdir(path, { recursive: true, mode: 0o700 })
      return path
    }
  })
}
