import type { Migration } from 'busbar/sdk'

/** One that is stopped keeps its cache, and when that was used last. */
export const keepStoppedEngines: Migration = {
  name: '012-keep-stopped-engines',
  phase: 'expand',
  sql: 'alter table $schema.build_engine add column is_started boolean not null default true'
}
