import type { SingletonDeclarer } from 'busbar/sdk'
import type { AuditLogs } from './audit-logs.js'

export function singletons(singleton: SingletonDeclarer<AuditLogs>) {
  singleton({
    name: 'retention',
    run: async ({ signal }, { retain }) => {
      await retain(signal)
    }
  })
}
