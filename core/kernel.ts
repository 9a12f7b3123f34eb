import { mkdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import {
  access,
  type Clock,
  healthChecks,
  type Log,
  type Operations,
  projectRoleFor,
  type Tx,
  updateState
} from 'busbar/sdk'
import { startEmbedded } from '../embedded-postgres/index.js'
import { decideCaller } from './access/decision.js'
import { ProjectAccess } from './access/project-access.js'
import { AuditTrail } from './audit/audit-trail.js'
import { createAuthenticator } from './auth/authenticator.js'
import { CredentialCache } from './auth/credential-cache.js'
import { CredentialWatch, outlivedBySockets } from './auth/credential-watch.js'
import { createCredentials } from './auth/credentials.js'
import type { Authority, Verdict } from './bus/channel-access.js'
import { Hub } from './bus/hub.js'
import { pluginBus } from './bus/plugin-bus.js'
import { createRelay } from './bus/relay.js'
import { systemClock } from './clock/clock.js'
import { withDeadline } from './clock/waits.js'
import type { Settings } from './config/environment.js'
import { installCodeGuard } from './database/code-guard.js'
import { openListener } from './database/listener.js'
import { type MigrationPlan, migrate } from './database/migrations.js'
import { pluginDatabase } from './database/plugin-database.js'
import { openPostgres, type PluginKind, type Postgres } from './database/postgres.js'
import { disableReachingCode } from './database/reaching-code.js'
import { describeChannels } from './declarations/asyncapi.js'
import { keptDescription } from './declarations/kept-description.js'
import { describeApi } from './declarations/openapi.js'
import { record } from './declarations/recorder.js'
import { watchEventLoop } from './event-loop/event-loop-watch.js'
import { StallRecord } from './event-loop/stall-record.js'
import { EventHub } from './events/events.js'
import { createExec } from './exec/exec.js'
import { keepCallbacksInFrames } from './frames/callback-frames.js'
import { keepListenersInFrames } from './frames/listener-frames.js'
import { keepProcessRunning } from './frames/process-end.js'
import { keepServersInFrames } from './frames/server-frames.js'
import { keepStacksReadable } from './frames/stack-format.js'
import { refuseHalfRestored } from './half-restored.js'
import { Edge } from './http/edge.js'
import { Guard } from './http/guard.js'
import { Health } from './http/health.js'
import { Idempotency } from './http/idempotency.js'
import { KeptAnswers } from './http/kept-answers.js'
import { ownProxyTest } from './http/own-proxy.js'
import { PluginInstance } from './http/plugin-instance.js'
import { RouteTable, type TableEntry } from './http/route-table.js'
import { SocketTable } from './http/socket-table.js'
import { StreamCap } from './http/stream-cap.js'
import { acceptUpgrades, hubRecord, socketRoute } from './http/upgrades.js'
import { installationOf } from './installation.js'
import { instanceFacts } from './instance-facts.js'
import { JobRunner } from './jobs/job-runner.js'
import { Singletons } from './jobs/singleton.js'
import { type KernelSelf, kernelPlugin } from './kernel-plugin.js'
import { kernelMigrations } from './kernel-schema.js'
import { contributeWarnings } from './kernel-warnings.js'
import { RateLimiter } from './limits/rate-limiter.js'
import { createLog, type LineSink } from './log/log.js'
import { createRedactor } from './log/redactor.js'
import { ChoiceSignal } from './plugins/choice-signal.js'
import type { PluginRoot } from './plugins/discovery.js'
import { noteFault } from './plugins/plugin-entry.js'
import { schemaOf } from './plugins/plugin-schema.js'
import { PluginStore } from './plugins/plugin-store.js'
import { Purge } from './plugins/purge.js'
import { Reconciler, type ReconcilerOptions } from './plugins/reconciler.js'
import { release } from './release.js'
import { ResourceRemovals } from './resources/resource-removals.js'
import { ResourceOwners, resourcesFor } from './resources/resources.js'
import { RunningKinds } from './resources/running-kinds.js'
import { ScheduleStore } from './schedules/schedule-store.js'
import { Scheduler } from './schedules/scheduler.js'
import { createKeyring } from './secrets/keyring.js'
import { secretsFor } from './secrets/secrets.js'
import type { BuiltInServices, CommonServices, PluginServices } from './services/container.js'
import { ServiceRegistry } from './services/registry.js'
import { Shutdown } from './shutdown.js'
import { statisticsOf } from './statistics.js'

interface KernelOptions {
  readonly settings: Settings
  readonly roots: readonly PluginRoot[]
  readonly inline?: ReconcilerOptions['inline']
  readonly clock?: Clock
  readonly logDestination?: LineSink
  /** Off in tests: it is about the whole process. */
  readonly watchesEventLoop?: boolean
}

/** A running platform. */
export interface Kernel {
  readonly address: AddressInfo
  readonly log: Log
  readonly reconciler: Reconciler
  readonly edge: Edge
  readonly hub: Hub
  readonly jobs: JobRunner
  readonly events: EventHub
  readonly postgres: Postgres
  readonly registry: ServiceRegistry
  readonly health: Health
  readonly removals: ResourceRemovals
  /** When the event loop stood still, for how long and in which plugin; empty unless that is watched. */
  readonly stalls: StallRecord
  /** Resolves when the third-party plugins have been started, or could not be. */
  readonly settled: Promise<void>
  /** Stops in the reverse order of the start; what is under way may finish, within limits. */
  close(): Promise<void>
}

/** Within it everything has ended or is left behind; docker-compose.yml allows for it, and for a second for each part after it. */
const stopLimitMs = 22_000
const closeLimitMs = 10_000
const maxCachedCredentials = 10_000
const healthEveryMs = 30_000
const expiredEveryMs = 10_000
const sweepEveryMs = 3_600_000
const subscribeLimitMs = 10_000
const keptAnswerBytes = 16 * 2 ** 20

/**
 * Assembles and starts the platform. Read this to see the system: what there is, what it is made from,
 * and in which order it comes up. `close` goes the same way back.
 */
export async function startKernel({
  settings,
  roots,
  inline = [],
  clock = systemClock(),
  logDestination,
  watchesEventLoop = false
}: KernelOptions): Promise<Kernel> {
  const shutdown = new Shutdown(stopLimitMs)
  try {
    return await assemble()
  } catch (error) {
    await shutdown.run()
    throw error
  }

  async function assemble(): Promise<Kernel> {
    const redactor = createRedactor()
    const log = createLog({
      level: settings.logLevel,
      format: settings.logFormat,
      redactor,
      destination: logDestination
    })
    await mkdir(settings.directory, { recursive: true, mode: 0o711 })
    await refuseHalfRestored(settings.directory)
    const keyring = await createKeyring({ directory: settings.directory, environment: process.env, redactor })

    // The database: the first thing up, the last thing down.
    const server =
      settings.databaseUrl === undefined
        ? await startEmbedded({ directory: settings.directory, log })
        : { url: settings.databaseUrl, stop: async () => {} }
    shutdown.add('the embedded PostgreSQL', server.stop)
    const postgres = await openPostgres({
      url: server.url,
      log,
      onEnded: (plugin, reason) => {
        noteFault(reconciler.entries.get(plugin), reason, clock.now())
      }
    })
    shutdown.add('the connections to PostgreSQL', async () => {
      await postgres.close()
    })
    const listener = await openListener({ postgres, log })
    shutdown.add('listening to other processes', async () => {
      await listener.close()
    })
    const runMigrations: ReconcilerOptions['migrate'] = async (plans, signal) =>
      (await migrate(postgres, plans, { version: release, log, signal })).failed
    await migrateKernel(async plans => await runMigrations(plans, forever))
    await installCodeGuard(postgres, log)
    const database = pluginDatabase(postgres, 'kernel')
    const installation = installationOf({ settings, url: server.url, keyring, environment: process.env })

    // Who may do what.
    const registry = new ServiceRegistry()
    const afterCommit = (tx: Tx, run: () => void): void => {
      postgres.afterCommit(tx, run)
    }
    const kinds = new RunningKinds()
    const owners = new ResourceOwners(postgres, kinds)
    const projects = new ProjectAccess(registry, owners, listener, afterCommit)
    const cache = new CredentialCache(maxCachedCredentials)
    const credentials = createCredentials({ cache, signals: listener, afterCommit })
    const sources = registry.contributions(access.credentials)
    const authenticate = createAuthenticator({ cache, sources, clock, log })
    const held = new CredentialWatch({ cache, sources, clock, log })
    const limiter = new RateLimiter(clock)
    const guard = new Guard(authenticate, projects, limiter, clock, sources)

    // What is live and what is durable.
    const hub = new Hub({
      log,
      clock,
      redactor,
      maxConnectionsPerUser: settings.maxSocketsPerUser,
      relay: createRelay({ signals: listener, log }),
      authority: authorityOf(projects),
      holdCredential: (caller, lost) => held.hold(caller, lost, outlivedBySockets)
    })
    projects.watchers.add(change => {
      hub.recheck(change)
    })
    const jobs = new JobRunner({ postgres, log })
    const events = new EventHub({ jobs, clock, log })
    const singletons = new Singletons(postgres)
    const schedules = new Scheduler({
      store: new ScheduleStore(database),
      jobs,
      signals: listener,
      clock,
      log
    })
    const exec = createExec({ log })

    // Where requests come in.
    keepServersInFrames()
    keepListenersInFrames()
    keepCallbacksInFrames()
    keepProcessRunning()
    keepStacksReadable()
    const sockets = new SocketTable()
    // The same in all processes of the installation: any of them may be asked by the proxy of another.
    const proxySecret = keyring.sign('requests of a proxy of this installation', 'kernel/proxy')
    redactor.add([proxySecret])
    const edge = new Edge({
      settings,
      isOwnProxy: ownProxyTest(proxySecret),
      guard,
      projects,
      credentials: held,
      isSocket: path => path === hubRecord.url || sockets.find(path) !== undefined,
      isStarting: id => reconciler.entries.get(id)?.state.name === 'starting',
      log
    })
    shutdown.add('HTTP', async () => {
      await edge.close(closeLimitMs)
    })

    // What plugs in.
    const audit = new AuditTrail(database, clock, log)
    const idempotency = new Idempotency(database, clock, secretsFor(keyring, redactor, 'kernel'))
    const removals = new ResourceRemovals({
      postgres,
      kinds,
      jobs,
      registry,
      disabled: {
        runTemporarily: async (schema, signal, use) => await reconciler.runTemporarily(schema, signal, use)
      },
      order: () => reconciler.catalog.order,
      clock,
      log
    })
    const streams = new StreamCap(settings.maxEventStreamsPerUser)
    const kept = new KeptAnswers(keptAnswerBytes)
    const http = { audit, idempotency, secureCookies: settings.secureCookies, streams, guard, kept }
    const kernelRecords = record(kernelPlugin, { id: 'kernel', builtIn: true })
    let kernelEntries: TableEntry[] = kernelRecords.routes.map(route => ({
      record: route,
      instance: undefined
    }))
    const choices = new ChoiceSignal(listener, log)
    const purge = new Purge({ postgres, directory: settings.directory, clock, log })
    await purge.removePartialDumps()
    const reconciler = new Reconciler({
      http,
      roots,
      inline,
      directory: settings.directory,
      store: new PluginStore(database, clock),
      purge,
      registries: {
        registry,
        hub,
        jobs,
        events,
        singletons,
        schedules,
        kinds,
        removals,
        log,
        worksJobs: settings.role !== 'api'
      },
      clock,
      log,
      migrate: runMigrations,
      variables: settings.variable,
      kernelServices,
      checkCode: async id => {
        // Where there is the guard too: an earlier release may have let it make such.
        await disableReachingCode(postgres, schemaOf(id, false))
      },
      cutOffDatabase: id => {
        postgres.cutOff(id)
      },
      onRoutes: entries => {
        edge.table = new RouteTable([...kernelEntries, ...entries])
        sockets.replace(reconciler.entries.values())
        projects.forgetAll()
        // A new identity may answer otherwise; it forgets at its start, while the old one still answers.
        cache.drop({ kind: 'all' })
      },
      announce: async reloaded => {
        await choices.announce(reloaded)
      }
    })
    const served = () => [
      hubRecord,
      ...sockets.records.map(socketRoute),
      ...edge.table.entries.filter(isServed).map(entry => entry.record)
    ]
    const operations: Operations = {
      admitting: caller =>
        served().filter(({ access }) => access.kind !== 'public' && decideCaller(caller, access) === null)
    }
    const stalls = new StallRecord()
    const statistics = statisticsOf({ edge, hub, postgres, jobs, streams, stalls, reconciler, log })
    const health = new Health({
      vital: {
        database: async () => {
          await postgres.query('select 1')
          return 'ok'
        },
        keyring: async () => keyring.open(keyring.seal('ok', 'healthz'), 'healthz')
      },
      contributed: registry.contributions(healthChecks),
      clean: redactor.clean
    })
    contributeWarnings(registry, { settings, environment: process.env, database, audit, clock })
    const updates = registry.contributions(updateState)
    const self: KernelSelf = {
      version: release,
      reconciler,
      openapi: keptDescription(
        () => edge.table,
        () => describeApi(served())
      ),
      asyncapi: keptDescription(() => hub.channels, describeChannels),
      health,
      isUpdating: () => updates.get('platform')?.isUpdating() === true
    }
    const kernelInstance = await PluginInstance.create({
      ...http,
      plugin: 'kernel',
      routes: kernelRecords.routes,
      self,
      log
    })
    kernelEntries = kernelRecords.routes.map(route => ({ record: route, instance: kernelInstance }))

    shutdown.add('jobs', async () => {
      await Promise.all([jobs.stop(), singletons.close()])
    })
    shutdown.add('processes', async () => {
      await exec.close()
    })
    shutdown.add('requests to the kernel', async () => {
      await kernelInstance.drain(closeLimitMs)
    })
    shutdown.add('plugins', async () => {
      await reconciler.close()
    })
    await reconciler.boot()
    if (settings.role !== 'api') await jobs.start()
    const stops = [
      choices.follow(reconciler),
      clock.every(healthEveryMs, async () => {
        await reconciler.checkHealth()
      }),
      clock.every(expiredEveryMs, async () => {
        await held.askForExpired()
      }),
      clock.every(sweepEveryMs, async () => {
        await idempotency.sweep()
      })
    ]
    shutdown.add('periodic work', () => {
      for (const stop of stops) stop()
    })
    shutdown.add('live channels', async () => {
      await hub.close()
    })
    shutdown.add('upgrades', await acceptUpgrades({ edge, guard, hub, log, clock, sockets }))
    const address = await edge.listen()
    // First of all: requests that come while plugins stop would get an error that they are off.
    shutdown.add('accepting requests', () => {
      edge.stopAccepting()
    })
    if (settings.role !== 'api')
      void singletons.run({
        name: 'kernel.schedules',
        run: async signal => {
          await schedules.run(signal)
        },
        signal: forever,
        log
      })
    singletons.begin()
    if (watchesEventLoop)
      shutdown.add('watch over the event loop', watchEventLoop({ log, record: stalls }).stop)
    // Third-party plugins are not waited for: the platform serves meanwhile.
    const settled = reconciler.startThirdParties()

    return {
      address,
      log,
      reconciler,
      edge,
      hub,
      jobs,
      events,
      postgres,
      registry,
      health,
      removals,
      stalls,
      settled,
      close: async () => {
        await shutdown.run(log)
      }
    }

    function kernelServices(id: string, kind: PluginKind): PluginServices {
      const builtIn = kind !== 'third-party'
      const schema = schemaOf(id, builtIn)
      const common: CommonServices = {
        database: pluginDatabase(postgres.for({ plugin: id, kind, schema }), schema),
        jobs: jobs.for(id),
        schedules: schedules.for(id),
        events: events.for(id),
        bus: pluginBus({ id, builtIn, hub, signals: listener }),
        secrets: secretsFor(keyring, redactor, id),
        clock,
        exec,
        instance: instanceFacts(id, { settings, address: () => edge.server.address(), proxySecret }),
        resources: resourcesFor(id, { postgres, kinds, owners, removals }),
        notificationKinds: { list: () => events.notificationKinds() }
      }
      const more: BuiltInServices = {
        credentials,
        projectFacts: projects,
        audit,
        operations,
        statistics,
        installation
      }
      return builtIn ? { ...common, ...more } : common
    }
  }
}

/** Until the platform closes. */
const forever = new AbortController().signal
const isServed = ({ instance }: TableEntry): boolean => instance !== undefined

async function migrateKernel(
  run: (plans: readonly MigrationPlan[]) => Promise<ReadonlyMap<string, Error>>
): Promise<void> {
  const failed = await run([{ plugin: 'kernel', schema: 'kernel', migrations: kernelMigrations }])
  for (const error of failed.values()) throw error
}

const notGranted: Verdict = Object.freeze({ isGranted: false, project: undefined })

/** A subscription is decided like a request: caller, then project. */
const authorityOf = (projects: ProjectAccess): Authority => ({
  async decide({ access, param }, id, caller) {
    if (access.kind === 'public' || decideCaller(caller, access) !== null) return notGranted
    const decision = await withDeadline(
      projects.decide(caller, access, param === null ? {} : { [param]: id }),
      subscribeLimitMs,
      'deciding a subscription'
    )
    return decision.refused === null ? { isGranted: true, project: decision.project } : notGranted
  },
  async decideIn({ access }, project, caller) {
    if (access.kind === 'public' || decideCaller(caller, access) !== null) return false
    const decision = await withDeadline(
      projects.decideProject(caller, project, projectRoleFor(access)),
      subscribeLimitMs,
      'deciding a subscription'
    )
    return decision.refused === null
  }
})
