import type { DatabaseStatus } from '../api.js'

/** `control`: its container is started or stopped. */
export type DatabaseTask = 'provision' | 'upgrade' | 'backup' | 'restore' | 'control'

/** A row, credentials sealed. */
export interface DatabaseRow {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly slug: string
  readonly type: string
  readonly version: string
  readonly status: DatabaseStatus
  readonly status_detail: string | null
  readonly task: DatabaseTask | null
  readonly status_before: DatabaseStatus | null
  readonly image: string | null
  /** What its image is found by again, whatever its name has come to mean. */
  readonly image_reference: string | null
  /** What its containers are made from: a name that only the platform knows, where it was fetched. */
  readonly image_name: string | null
  readonly source_kind: string | null
  readonly source_ref: string | null
  readonly container_id: string | null
  /** Its container is to be made anew; the one of before is there until then. Absent of one that is not in the table yet. */
  readonly is_remade?: boolean
  /** They were set while it did not run: its container has those of before. */
  readonly are_limits_due?: boolean
  readonly container_port: number
  readonly data_dir: string | null
  readonly backup_mode: string
  readonly backup_command: string | null
  readonly restore_command: string | null
  readonly credentials: string
  readonly cpu_limit: number
  readonly memory_limit: number
  readonly volume: string
  /** When it was measured last; null before that. */
  readonly volume_bytes: number | null
  /** The one before a restore, while the new one is not proven. */
  readonly former_volume: string | null
  /** The one that a restore makes; null where none is under way. Absent of one that is not in the table yet. */
  readonly next_volume?: string | null
  /** The newest restore that was begun, and how it has ended where nobody was told. Absent of one that is not in the table yet. */
  readonly restore_id?: string | null
  readonly restore_outcome?: 'restored' | 'undone' | null
  /** Why it is `undone`, where that is to be told. */
  readonly restore_reason?: string | null
  readonly is_external: boolean
  readonly external_port: number | null
  /** When its server has answered for the first time: before that nothing in its volume counts. */
  readonly initialized_at: Date | null
  readonly stop_asked_at: Date | null
  readonly delete_backups: boolean
  readonly created_at: Date
  readonly updated_at: Date
}

/** What it is busy with, as a refusal says it. */
export const doing = ({ task, status }: Pick<DatabaseRow, 'task' | 'status'>): string =>
  task === 'control' ? 'being started or stopped' : status.replace('_', ' ')

export const databaseColumns = `id, project_id, name, slug, type, version, status, status_detail, task, status_before, image, image_reference,
  image_name, source_kind, source_ref, container_id, is_remade, are_limits_due, container_port, data_dir, backup_mode, backup_command, restore_command,
  credentials, cpu_limit, memory_limit, volume, volume_bytes, former_volume, next_volume, restore_id, restore_outcome, restore_reason, is_external, external_port, initialized_at, stop_asked_at, delete_backups, created_at, updated_at`
