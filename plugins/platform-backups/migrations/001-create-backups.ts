import type { Migration } from 'busbar/sdk'

export const createBackups: Migration = {
  name: '001-create-backups',
  phase: 'expand',
  sql: `
    create table $schema.run (
      id uuid primary key,
      started_at timestamptz(3) not null,
      -- When a worker took it up; null while it waits for one.
      begun_at timestamptz(3),
      finished_at timestamptz(3),
      status text not null check (status in ('running', 'succeeded', 'failed')),
      -- The name of the archive in the folder of backups.
      file text,
      -- Where it is uploaded to, from before the first byte of it.
      remote_key text,
      is_uploaded boolean not null default false,
      size_bytes bigint not null default 0,
      encrypted boolean not null default false,
      error text,
      log text not null default ''
    );
    create unique index run_running on $schema.run ((true)) where status = 'running';
    create index run_started_at on $schema.run (started_at desc, id desc);
    -- One row at most. What is null there is as the environment has it.
    create table $schema.remote (
      id boolean primary key default true check (id),
      enabled boolean,
      endpoint text,
      region text,
      bucket text,
      prefix text,
      use_ssl boolean,
      access_key text,
      secret_key text,
      updated_at timestamptz(3) not null
    );
    create table $schema.recovery_key (
      id uuid primary key,
      -- What archives are encrypted to; the key itself is nowhere.
      recipient text not null,
      created_at timestamptz(3) not null
    );
    create index recovery_key_created_at on $schema.recovery_key (created_at desc, id desc);
  `
}
