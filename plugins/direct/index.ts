import {
  applicationAddresses,
  applicationDeleted,
  applicationLifecycle,
  applicationRegistry,
  applicationTeardown
} from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/runtime-docker'
import { definePlugin, kernel, optional } from 'busbar/sdk'
import { AddressService } from './address-service.js'
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

  async start({ use, log, onStop }) {
    const store = createAddressStore(use.db)
    const settings = readSettings(name => use.instance.environment(name))
    const service = new AddressService({ store, settings, bus: use.bus, clock: use.clock, log })
    onStop(() => service.stop())
    await service.resume()
    onStop(service.watch())
    return { service, containers: createContainerWatch({ ...use, store, service, log }) }
  },

  provides(provide, { service }) {
    // These alone: nobody else may stop the service.
    provide(directAddresses, {
      open: id => service.open(id),
      switchTo: (id, target) => service.switchTo(id, target),
      retarget: (id, target) => service.retarget(id, target),
      close: id => service.close(id)
    })
  },

  contributes(contribute, { service, containers }) {
    contribute(applicationAddresses, 'direct', { directUrl: id => service.directUrl(id) })
    contribute(applicationLifecycle, 'direct', containers)
    contribute(applicationTeardown, 'direct', { teardown: id => service.close(id) })
  },

  singletons(singleton) {
    singleton({ name: 'container-watch', run: ({ signal }, { containers }) => containers.run(signal) })
  },

  events(on) {
    on(applicationDeleted, ({ applicationId }, { service }) => service.close(applicationId))
  },

  health({ service }) {
    const count = service.refusedCount()
    return count === 0
      ? { status: 'ok' }
      : {
          status: 'degraded',
          reason: `the ports of ${count} applications are taken by other programs; see the log`
        }
  }
})
