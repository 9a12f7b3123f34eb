import type { BackupPlan } from '../runs/backup-service.js'
import type { ConfigRow } from './config-store.js'

/** What the kernel knows its times by. */
export const runKey = (id: string): string => `config/${id}`

export const planOf = (config: ConfigRow): BackupPlan => ({
  configId: config.id,
  destinationId: config.destination_id,
  databases: config.databases,
  quiesce: config.quiesce
})
