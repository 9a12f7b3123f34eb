import type { Migration } from 'busbar/sdk'

/** `step`: how many seconds a point stands for. */
export const createHostPoints: Migration = {
  name: '001-create-host-points',
  phase: 'expand',
  sql: `
    create table $schema.host_point (
      step integer not null,
      recorded_at timestamptz(3) not null,
      cpu_percent real,
      memory_used bigint,
      memory_total bigint,
      disk_used bigint,
      disk_total bigint,
      swap_used bigint,
      swap_total bigint,
      primary key (step, recorded_at)
    );
  `
}
