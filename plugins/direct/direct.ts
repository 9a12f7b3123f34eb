import {
  applicationAddresses,
  applicationLifecycle,
  applicationRegistry,
  applicationTeardown
} from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { trafficRouters } from 'busbar/api/deployments'
import { reservedHostnames } from 'busbar/api/domains'
import { imageService } from 'busbar/api/images'
import {
  type Contributor,
  type Health,
  kernel,
  optional,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { AddressService } from './address-service.js'
import { createAddressStore } from './address-store.js'
import { directAddresses } from './api.js'
import { type ContainerWatch, createContainerWatch } from './container-watch.js'
import { isOwnHost } from './hosts.js'
import { directSettingsOf, type Settings } from './settings.js'
import { createTrafficRouter } from './traffic-router.js'

export const needs = {
  db: kernel.database,
  bus: kernel.bus,
  clock: kernel.clock,
  instance: kernel.instance,
  registry: applicationRegistry,
  runtime: optional(containerRuntime),
  imageService: optional(imageService)
}

/** The running plugin. */
export interface Direct {
  readonly service: AddressService
  readonly containers: ContainerWatch
  /** The host of direct addresses, or their pattern. */
  readonly host: string
}

export async function startDirect({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<Direct> {
  const store = createAddressStore(use.db)
  const settings = directSettingsOf(config, use.instance)
  const service = new AddressService({ store, settings, bus: use.bus, clock: use.clock, log })
  onStop(() => service.stop())
  await service.resume()
  onStop(service.watch())
  return { service, host: settings.host, containers: createContainerWatch({ ...use, store, service, log }) }
}

export function directServices(provide: ServiceBinder, { service }: Direct): void {
  // These alone: other plugins must not stop the service.
  provide(directAddresses, {
    open: id => service.open(id),
    switchTo: (id, target) => service.switchTo(id, target),
    retarget: (id, target) => service.retarget(id, target),
    close: id => service.close(id)
  })
}

export function directContributions(contribute: Contributor, { service, containers, host }: Direct): void {
  // Cookies ignore ports: a domain of that name would be sent those of the application there.
  contribute(reservedHostnames, 'direct', {
    reserves: hostname => (isOwnHost(host, hostname) ? 'a host of direct addresses' : null)
  })
  contribute(applicationAddresses, 'direct', { directUrl: id => service.directUrl(id) })
  contribute(applicationLifecycle, 'direct', containers)
  contribute(applicationTeardown, 'direct', { teardown: id => service.close(id) })
  contribute(trafficRouters, 'direct', createTrafficRouter(service))
}

export function directHealth({ service }: Direct): Health {
  const count = service.refusedCount()
  return count === 0
    ? { status: 'ok' }
    : {
        status: 'degraded',
        reason: `the ports of ${count} applications are taken by other programs; see the log`
      }
}
