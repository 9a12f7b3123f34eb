import type { DatabaseRow } from './database-row.js'

/** What a row begins with of which nothing has been made yet. */
export const newRow = (now: Date) =>
  ({
    status: 'creating',
    status_detail: null,
    status_before: null,
    image_name: null,
    source_kind: null,
    source_ref: null,
    container_id: null,
    volume_bytes: null,
    former_volume: null,
    is_external: false,
    external_port: null,
    initialized_at: null,
    stop_asked_at: null,
    delete_backups: false,
    created_at: now,
    updated_at: now
  }) as const satisfies Partial<DatabaseRow>
