import type { Migration } from 'busbar/sdk'

/** Refers to no volume: what was stopped is started again also when that has gone meanwhile. */
export const addBackupWork: Migration = {
  name: '002-add-backup-work',
  phase: 'expand',
  sql: `
    create table $schema.backup_work (
      volume_id uuid not null,
      what text not null,
      application_id uuid not null,
      engine_name text collate "C" not null,
      has_stopped boolean not null,
      spare_name text collate "C",
      is_exchanging boolean not null,
      primary key (volume_id, what)
    );
    create index backup_work_application on $schema.backup_work (application_id);
  `
}
