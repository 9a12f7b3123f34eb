import type { Migration } from 'busbar/sdk'

/** A restore names the volume that it makes before that is made: one that nothing names may be anybody's, and is never removed. */
export const nameNextVolumes: Migration = {
  name: '006-name-next-volumes',
  phase: 'expand',
  sql: `
    alter table $schema.database
      add column next_volume text,
      -- Of a restore that was undone: why, and where what it may have taken is.
      add column restore_reason text;
  `
}
