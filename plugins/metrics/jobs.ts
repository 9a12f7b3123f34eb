import type { SingletonDeclarer } from 'busbar/sdk'
import type { Metrics } from './metrics.js'

export function singletons(singleton: SingletonDeclarer<Metrics>): void {
  singleton({
    name: 'host-history',
    run: async ({ signal }, { hostHistory }) => {
      await hostHistory.run(signal)
    }
  })
  singleton({
    name: 'application-history',
    run: async ({ signal }, { applicationHistory }) => {
      await applicationHistory.run(signal)
    }
  })
}
