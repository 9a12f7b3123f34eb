import type { Migration } from 'busbar/sdk'

export const createUpgrades: Migration = {
  name: '003-create-upgrades',
  phase: 'expand',
  sql: `
    create table $schema.upgrade (
      id uuid primary key,
      database_id uuid not null references $schema.database on delete cascade,
      -- 'running': what is there now is the old one; 'switched': the new one is to be proven; then how it ended.
      phase text not null check (phase in ('running', 'switched', 'succeeded', 'failed')),
      from_version text not null,
      to_version text not null,
      former_volume text not null,
      former_image text,
      former_image_reference text,
      former_image_name text,
      log text not null default '',
      error text,
      -- When a process took it up: one that has been taken up and is not over was cut off.
      begun_at timestamptz,
      started_at timestamptz not null,
      finished_at timestamptz,
      -- The old volume is kept until then; null once it is gone.
      kept_until timestamptz
    );
    create unique index upgrade_open on $schema.upgrade (database_id) where phase in ('running', 'switched');
    create index upgrade_kept on $schema.upgrade (kept_until) where kept_until is not null;
  `
}
