import type { ApplicationRegistry } from 'busbar/api/applications'
import type { CertificateStore } from 'busbar/api/certificates'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import {
  type Bus,
  bounded,
  type Clock,
  type Contributions,
  createKeyedMutex,
  type Log,
  type OptionalHandle,
  type Tx
} from 'busbar/sdk'
import {
  type ApplicationTargets,
  type HostTable,
  hostTableOf,
  isBelow,
  type ProxyDriver,
  pathOf,
  type RouteDirectory
} from './api.js'
import { type RoutingStore, targetOf } from './routing-store.js'
import { routingTableOf } from './routing-table.js'

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
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}

/** Makes the driver that is in charge serve what the database says, in this process. */
export class Routing {
  /** The driver that has been given everything. */
  #served: ProxyDriver | undefined
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
    return requests.map(({ hostname, path }) => {
      const asked = pathOf(path)
      const routes = hosts.routesOf(hostname.replace(/\.$/, ''))
      return routes.find(route => isBelow(route.path, asked))?.applicationId ?? null
    })
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
        const isDue = this.#fault !== null && clock.now().getTime() >= this.#retryAt
        if (this.driver() !== this.#served || isDue) await this.refresh()
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
    const port =
      application.containerPort ??
      (row !== undefined && row.deployment_id === serving.owner.deploymentId ? row.port : defaultPort)
    const at = await engine.dial(serving.id, port)
    await this.retarget(applicationId, {
      deploymentId: application.containerDeploymentId,
      containerId: serving.id,
      ...at
    })
  }

  async #switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch | null> {
    if (!(await this.parts.store.setTarget(applicationId, target))) return null
    const targets = await this.#targetsOf(applicationId, target)
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

  async #load(): Promise<void> {
    const { store, certificates, log, clock } = this.parts
    if (this.#isStopped) return
    const driver = this.driver()
    try {
      const [domains, features, ownHosts] = await Promise.all([
        store.domains(),
        store.features(),
        store.ownHosts()
      ])
      const used = new Set(domains.flatMap(({ certificate_id }) => certificate_id ?? []))
      const table = routingTableOf({
        domains,
        features,
        ownHosts,
        certificates: driver === undefined ? [] : await certificates.open([...used].toSorted())
      })
      this.#hosts = hostTableOf(table)
      if (driver === undefined) {
        this.#served = undefined
        this.#fault = null
        return
      }
      if (driver !== this.#served) await this.#giveTargets(driver)
      if (this.#isStopped) return
      await bounded(async () => await driver.load(table), {
        ms: driverLimitMs,
        what: `the proxy driver ${driver.name}`
      })
      const former = this.#served
      this.#served = driver
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
      this.#retryAt = clock.now().getTime() + retryMs
    }
  }

  async #giveTargets(driver: ProxyDriver): Promise<void> {
    for (const row of await this.parts.store.targets())
      await driver.retarget(
        row.application_id,
        row.is_running ? await this.#targetsOf(row.application_id, targetOf(row)) : null
      )
  }

  async #follow(applicationId: string): Promise<void> {
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

  /** A domain may name a port of its own; that of a container which cannot be asked is at the same address. */
  async #targetsOf(applicationId: string, main: TrafficTarget): Promise<ApplicationTargets> {
    const { store, runtime } = this.parts
    const targets = new Map<number | null, TrafficTarget>([[null, main]])
    for (const port of await store.portsOf(applicationId)) {
      const at = await runtime
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
