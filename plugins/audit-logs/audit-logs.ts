import { kernel, type StartContext } from 'busbar/sdk'
import { AuditService } from './audit-service.js'
import { AuditStore } from './audit-store.js'
import { keepForDays } from './retention.js'
import type { Settings } from './settings.js'

export const needs = {
  audit: kernel.audit,
  db: kernel.database,
  clock: kernel.clock,
  resources: kernel.resources
}

/** The running plugin. */
export interface AuditLogs {
  readonly logs: AuditService
  /** Deletes what is too old, until its signal aborts. */
  readonly retain: (signal: AbortSignal) => Promise<void>
}

export function startAuditLogs({ use, config, log }: StartContext<typeof needs, Settings>): AuditLogs {
  return {
    logs: new AuditService(new AuditStore(use.db, use.audit.table), use.resources, use.clock),
    retain: async signal => {
      await keepForDays(config.retention_days, { ...use, log, signal })
    }
  }
}
