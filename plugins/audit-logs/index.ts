import { definePlugin, kernel, object, Type } from 'busbar/sdk'
import { resourceNames } from './api.js'
import { AuditService } from './audit-service.js'
import { AuditStore } from './audit-store.js'
import { keepForDays } from './retention.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'audit-logs',
  needs: { audit: kernel.audit, db: kernel.database, clock: kernel.clock, names: resourceNames },
  config: object({
    retention_days: Type.Integer({ default: 0, minimum: 0, maximum: 3650, description: 'Days a record is kept; 0 keeps all of them.' })
  }),
  start: ({ use, config, log }) => ({
    logs: new AuditService(new AuditStore(use.db, use.audit.table), use.names, use.clock),
    retain: async (signal: AbortSignal) => { await keepForDays(config.retention_days, { ...use, log, signal }) }
  }),
  routes: route => { routes(route) },
  singletons (singleton) {
    singleton({ name: 'retention', run: async ({ signal }, { retain }) => { await retain(signal) } })
  }
})
