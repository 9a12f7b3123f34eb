import type { SingletonDeclarer } from 'busbar/sdk'
import type { Builds } from './builds.js'

export function singletons(singleton: SingletonDeclarer<Builds>) {
  singleton({
    name: 'images',
    run: async ({ signal }, { sweep }) => {
      await sweep(signal)
    }
  })
}
