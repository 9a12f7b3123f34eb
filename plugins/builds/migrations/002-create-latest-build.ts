import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

export const createLatestBuild: Migration = {
  name: '002-create-latest-build',
  phase: 'expand',
  sql: `
    create table $schema.latest_build (
      application_id uuid primary key references ${applicationTable.reference} on delete restrict,
      built_at timestamptz(3) not null,
      stage_ends text[] not null
    );
  `
}
