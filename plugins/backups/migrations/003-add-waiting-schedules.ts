import type { Migration } from 'busbar/sdk'

export const addWaitingSchedules: Migration = {
  name: '003-add-waiting-schedules',
  phase: 'expand',
  sql: `
    -- When what has met other work was due, and what it waits for; null where nothing waits.
    alter table $schema.config add column waits_since timestamptz(3);
    alter table $schema.config add column waits_for text;
    -- It stays beside what its schedule keeps: the drill of a newer one has failed, and no newer one is proven.
    alter table $schema.backup add column stays boolean not null default false;
  `
}
