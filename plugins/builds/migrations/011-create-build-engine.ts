import type { Migration } from 'busbar/sdk'

export const createBuildEngine: Migration = {
  name: '011-create-build-engine',
  phase: 'expand',
  sql: `
    create table $schema.build_engine (
      project_id text primary key,
      used_at timestamptz not null
    );
  `
}
