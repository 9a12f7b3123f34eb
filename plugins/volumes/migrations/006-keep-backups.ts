import type { Migration } from 'busbar/sdk'

export const keepBackups: Migration = {
  name: '006-keep-backups',
  phase: 'expand',
  sql: `
    -- Of one that is being deleted: whether its backups are to be erased.
    alter table $schema.volume add column delete_backups boolean not null default false;
  `
}
