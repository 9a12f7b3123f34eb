import type { Migration } from 'busbar/sdk'

/** The check that a running version is asked again and again: that of its deploy, whatever has been set since. */
export const addHttpCheck: Migration = {
  name: '003-add-http-check',
  phase: 'expand',
  sql: 'alter table $schema.deployment add column http_check jsonb'
}
