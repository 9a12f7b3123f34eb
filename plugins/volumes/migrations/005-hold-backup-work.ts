import type { Migration } from 'busbar/sdk'

export const holdBackupWork: Migration = {
  name: '005-hold-backup-work',
  phase: 'expand',
  sql: `
    alter table $schema.backup_work
      -- Of who puts it back: which process, and until when that counts unless it says so again.
      add column hold uuid,
      add column held_until timestamptz;
  `
}
