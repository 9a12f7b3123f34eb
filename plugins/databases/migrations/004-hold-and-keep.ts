import type { Migration } from 'busbar/sdk'

export const holdAndKeep: Migration = {
  name: '004-hold-and-keep',
  phase: 'expand',
  sql: `
    alter table $schema.database drop constraint database_task_check;
    alter table $schema.database add constraint database_task_check
      check (task in ('provision', 'upgrade', 'backup', 'restore', 'control'));
    alter table $schema.database
      -- Of a start, a stop or a restart: which one it is, and until when it counts unless its process says so again.
      add column hold uuid,
      add column held_until timestamptz,
      -- Its container is to be made anew; the one of before is there until then.
      add column is_remade boolean not null default false,
      -- Its limits were set while it did not run: its container has those of before.
      add column are_limits_due boolean not null default false;
    -- Of one that was given up after the switch: its new volume may have rows that no other has, and is kept instead of the old one.
    alter table $schema.upgrade add column kept_volume text;
  `
}
