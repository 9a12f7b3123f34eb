import type { SingletonDeclarer } from 'busbar/sdk'
import type { Requests } from './requests.js'

export function singletons(singleton: SingletonDeclarer<Requests>): void {
  singleton({
    name: 'access-logs',
    run: async ({ signal }, { accessLogs }) => {
      await accessLogs.run(signal)
    }
  })
  singleton({
    name: 'retention',
    run: async ({ signal }, { retention }) => {
      await retention.keepDays(signal)
    }
  })
  singleton({
    name: 'most-rows',
    run: async ({ signal }, { retention }) => {
      await retention.keepRows(signal)
    }
  })
}
