import type { SingletonDeclarer } from 'busbar/sdk'
import type { RuntimeDocker } from './runtime-docker.js'

export function singletons(singleton: SingletonDeclarer<RuntimeDocker>) {
  singleton({
    name: 'networks',
    run: async ({ signal }, { networks }) => {
      await networks.sweep(signal)
    }
  })
  singleton({
    name: 'left-volumes',
    run: async ({ signal }, { runtime }) => {
      await runtime.leftVolumes.keepRemoving(signal)
    }
  })
  singleton({
    name: 'host-limits',
    run: async ({ signal }, { limit }) => {
      await limit(signal)
    }
  })
  singleton({
    name: 'crash-recovery',
    run: async ({ signal }, { recover }) => {
      await recover(signal)
    }
  })
}
