import type { SingletonDeclarer } from 'busbar/sdk'
import type { Notifications } from './notifications.js'

export function singletons(singleton: SingletonDeclarer<Notifications>): void {
  singleton({
    name: 'retention',
    run: async ({ signal }, { retain }) => {
      await retain(signal)
    }
  })
  singleton({
    name: 'unheld',
    run: async ({ signal }, { forgetUnheld }) => {
      await forgetUnheld(signal)
    }
  })
}
