import type { Migration } from 'busbar/sdk'

/** A restore names the volume that it makes before that is made: one that nothing names may be anybody's, and is never removed. */
export const nameNextVolumes: Migration = {
  name: '006-name-next-volumes',
  phase: 'expand',
  sql: 'alter table $schema.database add column next_volume text;'
}
