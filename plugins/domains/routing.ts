import type { ApplicationRegistry } from 'busbar/api/applications'
import type { CertificateStore } from 'busbar/api/certificates'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import type { ImageService } from 'busbar/api/images'
import {
  type Bus,
  bounded,
  type Clock,
  type Contributions,
  createKeyedMutex,
  type Instance,
  type Log,
  type OptionalHandle,
  type Tx
} from 'busbar/sdk'
import {
  type ApplicationTargets,
  type HostTable,
  hostTableOf,
  isBelow,
  type PlatformRoute,
  type ProxyDriver,
  type RouteDirectory,
  type RoutingTable,
  ruledPath
} from './api.js'
import { platformRouteOf } from './platform-route.js'
import { type RoutingStore, targetOf } from './routing-store.js'
import { routingTableOf } from './routing-table.js'
import type { Settings } from './settings.js'
import { type TableChanges, tableChanges } from './table-changes.js'

/** Told to every process when what is to be served has changed. */
const routesTopic = 'routes'
/** The same when the target of an application has. */
const targetTopic = 'target'
/** How soon a driver that has come is given everything. */
const lookMs = 500
/** How soon a table that a driver has refused is given to it again. */
const retryMs = 5000
/** Less than a request has. */
const driverLimitMs = 15_000
/** As a deploy decides when neither the application nor its image names a port. */
const defaultPort = 8080

interface RoutingParts {
  readonly store: RoutingStore
  readonly drivers: Contributions<ProxyDriver>
  readonly certificates: CertificateStore
  readonly registry: ApplicationRegistry
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly images: OptionalHandle<ImageService>
  readonly bus: Bus
  readonly clock: Clock
  readonly instance: Pick<Instance, 'listening' | 'trustedProxies'>
  readonly settings: Settings
  readonly log: Log
}

/** One time that a driver was given a table, or could not be. */
export interface LoadRun extends TableChanges {
  readonly at: Date
  readonly durationMs: number
  readonly error: string | null
}

/** Makes the driver that is in charge serve what the database says, in this process. */
export class Routing {
  /** The driver that has been given everything. */
  #served: ProxyDriver | undefined
  /** The one that was tried last, which may have refused. */
  #tried: ProxyDriver | undefined
  #table: RoutingTable | undefined
  #lastRun: LoadRun | undefined
  #runs = 0
  /** Applications whose target has changed while a driver that has come was told of all. */
  readonly #moved = new Set<string>()
  #fault: string | null = null
  #retryAt = 0
  #loading: Promise<void> = Promise.resolve()
  #isAskedFor = false
  /** Where the requests of one application go is changed in turns. */
  readonly #mutex = createKeyedMutex()
  #isStopped = false
  /** What is wanted, as requests are looked up in it; undefined before it was read. */
  #hosts: HostTable | undefined

  constructor(private readonly parts: RoutingParts) {}

  /** One that is no fallback, by its key, before one that is. */
  driver(): ProxyDriver | undefined {
    const [chosen] = this.parts.drivers
      .entries()
      .toSorted(
        (a, b) =>
          Number(a.value.fallback === true) - Number(b.value.fallback === true) || (a.key < b.key ? -1 : 1)
      )
    return chosen?.value
  }

  /** Why the driver does not serve what is wanted; null where it does. */
  fault(): string | null {
    return this.#fault
  }

  /** As `RouteDirectory` has it, by the table that was read last. */
  async applicationsOf(
    requests: Parameters<RouteDirectory['applicationsOf']>[0]
  ): Promise<ReadonlyArray<string | null>> {
    if (this.#hosts === undefined) await this.refresh()
    const hosts = this.#hosts
    if (hosts === undefined) throw new Error('the routes of hostnames could not be read yet')
    const platform = this.platform()?.hostname
    return requests.map(({ hostname, path }) => {
      const asked = ruledPath(path)
      const name = hostname.replace(/\.$/, '')
      // Whoever has a wildcard above it has nothing of what the platform is asked.
      if (name === platform) return null
      const routes = hosts.routesOf(name)
      return routes.find(route => isBelow(route.path, asked))?.applicationId ?? null
    })
  }

  /** The newest time that the driver was given what is stored, and how often it was; undefined before the first. */
  runs(): { readonly last: LoadRun; readonly count: number } | undefined {
    return this.#lastRun && { last: this.#lastRun, count: this.#runs }
  }

  /** How the platform itself is to be served by the driver that is on. */
  platform(): PlatformRoute | null {
    const { settings, instance } = this.parts
    const issues = this.driver()?.abilities.includes('acme') === true
    return platformRouteOf(settings, { listening: instance.listening(), issues })
  }

  /** Reads everything anew, where requests go too, and gives it to the driver of each process; what that has changed in this one. */
  async reload(): Promise<LoadRun | undefined> {
    await this.refresh()
    const run = this.#lastRun
    await this.changed()
    for (const { application_id: id } of await this.parts.store.targets()) await this.retargeted(id)
    return run
  }

  /** Something has changed in `tx`: every process looks again once that has committed. */
  async changed(tx?: Tx): Promise<void> {
    await this.parts.bus.signal(routesTopic, '', tx)
  }

  /** Resolves when what is stored now is served here; never rejects. Many calls make few loads. */
  refresh(): Promise<void> {
    if (this.#isAskedFor) return this.#loading
    this.#isAskedFor = true
    this.#loading = this.#loading.then(async () => {
      this.#isAskedFor = false
      await this.#load()
    })
    return this.#loading
  }

  /** Follows changes of other processes, and drivers that come and go. */
  watch(): () => void {
    const { bus, clock } = this.parts
    const stops = [
      bus.onSignal(routesTopic, () => void this.refresh()),
      bus.onSignal(
        targetTopic,
        applicationId => void this.#mutex.take(applicationId, async () => await this.#follow(applicationId))
      ),
      clock.every(lookMs, async () => {
        const isDue = this.#fault !== null && clock.elapsed() >= this.#retryAt
        if (this.driver() !== this.#tried || isDue || this.#isPlatformNew()) await this.refresh()
      })
    ]
    return () => {
      this.#isStopped = true
      for (const stop of stops) stop()
    }
  }

  switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch | null> {
    return this.#mutex.take(applicationId, async () => await this.#switchTo(applicationId, target))
  }

  /** As `switchTo`, but what goes there already is left in peace, and null is answered. */
  revert(applicationId: string, target: TrafficTarget | null): Promise<TrafficSwitch | null> {
    return this.#mutex.take(applicationId, async () => {
      const row = await this.parts.store.target(applicationId)
      const goesThere =
        target !== null &&
        row?.is_running === true &&
        row.container_id === target.containerId &&
        row.host === target.host
      if (target !== null && !goesThere) return await this.#switchTo(applicationId, target)
      await this.#retarget(applicationId, target)
      return null
    })
  }

  /** The application is stopped, or its container has moved. */
  retarget(applicationId: string, target: TrafficTarget | null): Promise<void> {
    return this.#mutex.take(applicationId, async () => await this.#retarget(applicationId, target))
  }

  /** A container has been started or has ended: where it listens now, if requests go to it. */
  renew(applicationId: string, containerId: string): Promise<void> {
    return this.#mutex.take(applicationId, async () => {
      const { store, runtime } = this.parts
      const row = await store.target(applicationId)
      const engine = runtime.get()
      if (row === undefined || row.container_id !== containerId || engine === undefined) return
      const isRunning = (await engine.inspect(containerId))?.status === 'running'
      const at = isRunning ? await engine.dial(containerId, row.port) : null
      // A deploy of another process may have switched meanwhile.
      if (!(await store.renew(applicationId, containerId, at))) return
      await this.#follow(applicationId)
      await this.#tellOthers(applicationId)
    })
  }

  /** Something that the ports depend on has changed: the domains of an application. */
  retargeted(applicationId: string): Promise<void> {
    return this.#mutex.take(applicationId, async () => {
      await this.#follow(applicationId)
      await this.#tellOthers(applicationId)
    })
  }

  /** What was deployed while this plugin was off: an application's container that runs, where none is known that does. */
  async adopt(applicationId: string): Promise<void> {
    const { store, runtime, registry } = this.parts
    const engine = runtime.get()
    const application = await registry.deployable(applicationId)
    if (engine === undefined || application === undefined || application.containerDeploymentId === null)
      return
    const row = await store.target(applicationId)
    if (row?.deployment_id === application.containerDeploymentId && row.is_running) return
    const serving = (await engine.list({ applicationId })).find(
      ({ owner, status }) => owner.deploymentId === application.containerDeploymentId && status === 'running'
    )
    if (serving === undefined) return
    const known = row?.deployment_id === serving.owner.deploymentId ? row?.port : undefined
    const port = application.containerPort ?? known ?? (await this.#exposedPort(serving.image)) ?? defaultPort
    const at = await engine.dial(serving.id, port)
    await this.retarget(applicationId, {
      deploymentId: application.containerDeploymentId,
      containerId: serving.id,
      ...at
    })
  }

  async #exposedPort(image: string): Promise<number | undefined> {
    return (await this.parts.images.get()?.image(image))?.exposedPorts[0]
  }

  async #switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch | null> {
    if (!(await this.parts.store.setTarget(applicationId, target))) return null
    const targets = await this.#targetsOf(applicationId, target)
    this.#moved.add(applicationId)
    const switched = (await this.#served?.switchTo(applicationId, targets)) ?? null
    await this.#tellOthers(applicationId)
    return switched
  }

  async #retarget(applicationId: string, target: TrafficTarget | null): Promise<void> {
    const { store } = this.parts
    if (target === null) await store.setStopped(applicationId)
    else await store.setTarget(applicationId, target)
    await this.#follow(applicationId)
    await this.#tellOthers(applicationId)
  }

  /** The platform has begun to listen since the driver was given its table. */
  #isPlatformNew(): boolean {
    if (this.#served === undefined || this.#fault !== null) return false
    return JSON.stringify(this.platform()) !== JSON.stringify(this.#table?.platform ?? null)
  }

  async #load(): Promise<void> {
    const { log, clock } = this.parts
    if (this.#isStopped) return
    const driver = this.driver()
    this.#tried = driver
    const begun = { at: clock.now(), elapsed: clock.elapsed() }
    const note = (changes: TableChanges, error: string | null): void => {
      this.#runs += 1
      const durationMs = Math.round(clock.elapsed() - begun.elapsed)
      this.#lastRun = { ...changes, at: begun.at, durationMs, error }
    }
    try {
      const table = await this.#wanted(driver !== undefined)
      this.#hosts = hostTableOf(table)
      if (driver === undefined) {
        this.#served = undefined
        this.#table = undefined
        this.#fault = null
        return
      }
      const isNew = driver !== this.#served
      if (isNew) await this.#giveTargets(driver)
      if (this.#isStopped) return
      await bounded(async () => await driver.load(table), {
        ms: driverLimitMs,
        what: `the proxy driver ${driver.name}`
      })
      const former = this.#served
      note(tableChanges(isNew ? undefined : this.#table, table), null)
      this.#served = driver
      this.#table = table
      if (isNew) await this.#followMoved()
      if (this.#fault !== null) log.info({ driver: driver.name }, 'the proxy serves what is wanted again')
      this.#fault = null
      if (former !== undefined && former !== driver) await former.release().catch(() => {})
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== this.#fault)
        log.error(
          { err: error, driver: driver?.name },
          'the proxy does not serve what is wanted; trying again'
        )
      this.#fault = reason
      this.#retryAt = clock.elapsed() + retryMs
      note({ added: 0, updated: 0, removed: 0 }, reason)
    }
  }

  /** All that is stored, as one value; certificates are opened where somebody is to serve with them. */
  async #wanted(isServed: boolean): Promise<RoutingTable> {
    const { store, certificates, instance } = this.parts
    const [domains, features, ownHosts] = await Promise.all([
      store.domains(),
      store.features(),
      store.ownHosts()
    ])
    const platform = this.platform()
    const used = new Set([
      ...domains.flatMap(({ certificate_id }) => certificate_id ?? []),
      ...(platform?.tls.mode === 'custom' ? [platform.tls.certificateId] : [])
    ])
    return routingTableOf({
      domains,
      features,
      ownHosts,
      platform,
      trustedProxies: instance.trustedProxies,
      certificates: isServed ? await certificates.open([...used].toSorted()) : []
    })
  }

  /** One question for all. What changes meanwhile is told to the driver of before; see `#followMoved`. */
  async #giveTargets(driver: ProxyDriver): Promise<void> {
    const { store } = this.parts
    this.#moved.clear()
    const [rows, ports] = await Promise.all([store.targets(), store.allPorts()])
    for (const row of rows)
      await driver.retarget(
        row.application_id,
        row.is_running ? await this.#targetsAt(targetOf(row), ports.get(row.application_id) ?? []) : null
      )
  }

  async #followMoved(): Promise<void> {
    for (const applicationId of this.#moved)
      await this.#mutex.take(applicationId, async () => await this.#follow(applicationId))
  }

  async #follow(applicationId: string): Promise<void> {
    this.#moved.add(applicationId)
    try {
      const row = await this.parts.store.target(applicationId)
      await this.#served?.retarget(
        applicationId,
        row?.is_running === true ? await this.#targetsOf(applicationId, targetOf(row)) : null
      )
    } catch (error) {
      this.parts.log.error(
        { err: error, applicationId },
        'could not follow where requests of an application go'
      )
    }
  }

  async #targetsOf(applicationId: string, main: TrafficTarget): Promise<ApplicationTargets> {
    return await this.#targetsAt(main, await this.parts.store.portsOf(applicationId))
  }

  /** A domain may name a port of its own; that of a container which cannot be asked is at the same address. */
  async #targetsAt(main: TrafficTarget, ports: readonly number[]): Promise<ApplicationTargets> {
    const targets = new Map<number | null, TrafficTarget>([[null, main]])
    for (const port of ports) {
      const at = await this.parts.runtime
        .get()
        ?.dial(main.containerId, port)
        .catch(() => undefined)
      targets.set(port, { ...main, ...(at ?? { port }) })
    }
    return targets
  }

  async #tellOthers(applicationId: string): Promise<void> {
    await this.parts.bus.signal(targetTopic, applicationId)
  }
}
