import type { Migration } from 'busbar/sdk'

/** Whether the version before it had to be killed. */
export const addOldVersionKilled: Migration = {
  name: '004-add-old-version-killed',
  phase: 'expand',
  sql: 'alter table $schema.deployment add column old_version_killed boolean'
}
