import type { Migration } from 'busbar/sdk'

/** Who puts something back ends that alone, and not what has begun anew in its place. */
export const identifyBackupWork: Migration = {
  name: '003-identify-backup-work',
  phase: 'expand',
  sql: `
    alter table $schema.backup_work add column id uuid not null default gen_random_uuid();
    create unique index backup_work_id on $schema.backup_work (id);
  `
}
