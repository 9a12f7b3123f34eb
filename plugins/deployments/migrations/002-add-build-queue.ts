import type { Migration } from 'busbar/sdk'

export const addBuildQueue: Migration = {
  name: '002-add-build-queue',
  phase: 'expand',
  sql: `
    alter table $schema.deployment
      add column queued_at timestamptz(3),
      add column waiting_for text,
      add column waiting_cause text,
      add column admitted_at timestamptz(3),
      add column admitted_memory bigint,
      add column admitted_cpus real;
    create index deployment_queue on $schema.deployment (queued_at) where status in ('pending', 'building') and queued_at is not null;
    create index deployment_turn on $schema.deployment (project_id, admitted_at) where admitted_at is not null`
}
