import { applicationAddresses, applicationDeleted, applicationLifecycle, applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/runtime-docker'
import { definePlugin, kernel, optional } from 'busbar/sdk'
import { createAddressService } from './address-service.js'
import { createAddressStore } from './address-store.js'
import { directAddresses } from './api.js'
import { createContainerWatch } from './container-watch.js'
import { createAddresses } from './migrations/001-create-addresses.js'
import { readSettings } from './settings.js'

export default definePlugin({
  id: 'direct',
  needs: {
    db: kernel.database,
    bus: kernel.bus,
    clock: kernel.clock,
    instance: kernel.instance,
    registry: applicationRegistry,
    runtime: optional(containerRuntime)
  },
  migrations: [createAddresses],

  async start ({ use, log, onStop }) {
    const store = createAddressStore(use.db)
    const settings = readSettings(name => use.instance.environment(name))
    const service = createAddressService({ store, settings, bus: use.bus, clock: use.clock, log })
    onStop(() => service.stop())
    await service.resume()
    onStop(service.watch())
    return { service, containers: createContainerWatch({ ...use, store, service, log }) }
  },

  provides (provide, { service }) {
    provide(directAddresses, service.addresses)
  },

  contributes (contribute, { service, containers }) {
    contribute(applicationAddresses, 'direct', { directUrl: id => service.directUrl(id) })
    contribute(applicationLifecycle, 'direct', containers)
    contribute(applicationTeardown, 'direct', { teardown: id => service.addresses.close(id) })
  },

  singletons (singleton) {
    singleton({ name: 'container-watch', run: ({ signal }, { containers }) => containers.run(signal) })
  },

  events (on) {
    on(applicationDeleted, ({ applicationId }, { service }) => service.addresses.close(applicationId))
  },

  health ({ service }) {
    const count = service.refusedCount()
    return count === 0
      ? { status: 'ok' }
      : { status: 'degraded', reason: `the ports of ${count} applications are taken by other programs; see the log` }
  }
})
