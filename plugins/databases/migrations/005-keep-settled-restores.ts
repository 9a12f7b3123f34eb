import type { Migration } from 'busbar/sdk'

/** A restore that was put back while nobody made backups is over: whoever makes them again is told how it has ended. */
export const keepSettledRestores: Migration = {
  name: '005-keep-settled-restores',
  phase: 'expand',
  sql: `
    alter table $schema.database
      -- The newest restore that was begun, and how it has ended where nobody was told.
      add column restore_id uuid,
      add column restore_outcome text check (restore_outcome in ('restored', 'undone'));
  `
}
