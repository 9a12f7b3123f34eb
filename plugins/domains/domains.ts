import { applicationLifecycle, applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { certificateStore, certificateUses } from 'busbar/api/certificates'
import { containerRuntime } from 'busbar/api/containers'
import { trafficRouters } from 'busbar/api/deployments'
import { imageService } from 'busbar/api/images'
import { platformParts } from 'busbar/api/platform'
import {
  type Contributor,
  type Health,
  kernel,
  optional,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import {
  type PublicAddress,
  proxyDrivers,
  publicAddress,
  type RouteDirectory,
  reservedHostnames,
  routeDirectory
} from './api.js'
import { ContainerWatch } from './container-watch.js'
import { DomainService } from './domain-service.js'
import { DomainStore } from './domain-store.js'
import { HostLooks } from './host-looks.js'
import { OwnHosts } from './own-hosts.js'
import { checkDashboard } from './platform-route.js'
import { ProxyService } from './proxy-service.js'
import { Routing } from './routing.js'
import { RoutingStore } from './routing-store.js'
import { ServerAddresses } from './server-address.js'
import type { Settings } from './settings.js'
import { TlsChecks } from './tls-checks.js'
import { createTrafficRouter } from './traffic-router.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  events: kernel.events,
  bus: kernel.bus,
  clock: kernel.clock,
  instance: kernel.instance,
  registry: applicationRegistry,
  certificates: certificateStore,
  runtime: optional(containerRuntime),
  images: optional(imageService),
  drivers: proxyDrivers,
  reserved: reservedHostnames
}

/** The running plugin. */
export interface Domains {
  readonly domains: DomainService
  readonly routing: Routing
  readonly ownHosts: OwnHosts
  readonly checks: TlsChecks
  readonly proxy: ProxyService
  readonly containers: ContainerWatch
  readonly addresses: ServerAddresses
}

export async function startDomains({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<Domains> {
  checkDashboard(config)
  const store = new DomainStore(use.db)
  const routingStore = new RoutingStore(use.db)
  const { host, publicUrl } = use.instance
  const names = { host, publicUrl, dashboard: config.dashboard_domain }
  const routing = new Routing({ ...use, store: routingStore, settings: config, log })
  onStop(routing.watch())
  const ownHosts = new OwnHosts({
    ...use,
    store: routingStore,
    names,
    routing,
    holdNames: tx => store.holdNames(tx)
  })
  const addresses = new ServerAddresses(config.public_ip, use.clock)
  const looks = new HostLooks({ ...use, routing, addresses, settings: config })
  return {
    routing,
    domains: new DomainService({ ...use, names, store, routingStore, routing, log }),
    ownHosts,
    addresses,
    checks: new TlsChecks({ ...use, store, routing, looks, log }),
    proxy: new ProxyService({ routing, looks, addresses, settings: config, startedAt: use.clock.now() }),
    containers: new ContainerWatch({ ...use, routing, ownHosts, log })
  }
}

export function domainServices(provide: ServiceBinder, { routing, addresses }: Domains): void {
  provide(routeDirectory, {
    applicationsOf: async requests => await routing.applicationsOf(requests)
  } satisfies RouteDirectory)
  provide(publicAddress, {
    read: async () => (await addresses.read()).effective || undefined
  } satisfies PublicAddress)
}

export function domainContributions(
  contribute: Contributor,
  { domains, routing, ownHosts, containers, proxy }: Domains
): void {
  contribute(platformParts, 'proxy', { parts: () => proxy.parts() })
  contribute(trafficRouters, 'domains', createTrafficRouter(routing, ownHosts))
  contribute(applicationLifecycle, 'domains', {
    started: async (applicationId, containerId) => await containers.started(applicationId, containerId),
    stopped: async applicationId => await containers.stopped(applicationId)
  })
  contribute(applicationTeardown, 'domains', { teardown: async id => await domains.removeOfApplication(id) })
  contribute(certificateUses, 'domains', { hostnames: async ids => await domains.hostnamesWith(ids) })
}

export function domainHealth({ routing }: Domains): Health {
  const fault = routing.fault()
  return fault === null
    ? { status: 'ok' }
    : { status: 'degraded', reason: `the proxy does not serve what is wanted: ${fault}` }
}
