import type { SingletonDeclarer } from 'busbar/sdk'
import type { Volumes } from './volumes.js'

export function singletons(singleton: SingletonDeclarer<Volumes>): void {
  singleton({
    name: 'discarded-volumes',
    run: async ({ signal }, { discarded }) => {
      await discarded.keepRemoving(signal)
    }
  })
  singleton({
    name: 'left-work',
    run: async ({ signal }, { leftWork }) => {
      await leftWork.run(signal)
    }
  })
}
