import type { Migration } from 'busbar/sdk'

/** What has built, and its steps. */
export const addBuildSteps: Migration = {
  name: '006-add-build-steps',
  phase: 'expand',
  sql: `
    alter table $schema.deployment add column build_engine text;

    create table $schema.build_step (
      deployment_id uuid not null references $schema.deployment (id) on delete cascade,
      number integer not null,
      name text not null,
      state text not null,
      started_at timestamptz(3) not null,
      ended_at timestamptz(3),
      primary key (deployment_id, number)
    )`
}
