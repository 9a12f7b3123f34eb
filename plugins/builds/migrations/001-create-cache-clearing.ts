import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

export const createCacheClearing: Migration = {
  name: '001-create-cache-clearing',
  phase: 'expand',
  sql: `
    create table $schema.cache_clearing (
      application_id uuid primary key references ${applicationTable.reference} on delete restrict,
      cleared_at timestamptz(3) not null
    );
  `
}
