import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

/** `step`: how many seconds a point stands for. `received` and `sent` are bytes a second. */
export const createApplicationPoints: Migration = {
  name: '002-create-application-points',
  phase: 'expand',
  sql: `
    create table $schema.application_point (
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      step integer not null,
      recorded_at timestamptz(3) not null,
      cpu_percent real not null,
      memory_used bigint not null,
      memory_limit bigint not null,
      received real not null,
      sent real not null,
      primary key (application_id, step, recorded_at)
    );
    create index application_point_age on $schema.application_point (step, recorded_at);
  `
}
