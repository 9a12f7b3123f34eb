import { keepForDays, kernel, type StartContext } from 'busbar/sdk'
import { AuditService } from './audit-service.js'
import { AuditStore } from './audit-store.js'
import type { Settings } from './settings.js'

export const needs = {
  audit: kernel.audit,
  db: kernel.database,
  clock: kernel.clock,
  resources: kernel.resources
}

/** Few enough that writers of records do not wait long. */
const deletedAtOnce = 5_000

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
      await keepForDays({
        days: config.retention_days,
        forget: async (before, atMost) => await use.audit.forget(before, atMost),
        batch: deletedAtOnce,
        what: 'old audit records',
        clock: use.clock,
        log,
        signal
      })
    }
  }
}
