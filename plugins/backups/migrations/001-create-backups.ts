import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

export const createBackups: Migration = {
  name: '001-create-backups',
  phase: 'expand',
  sql: `
    create table $schema.destination (
      id uuid primary key,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      name text not null,
      provider text not null,
      endpoint text not null,
      region text not null,
      bucket text not null,
      prefix text not null,
      use_ssl boolean not null,
      -- Sealed; null where the provider takes none.
      access_key text,
      secret_key text,
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null
    );
    create unique index destination_name on $schema.destination (project_id, name);
    -- What backups are made of, as it was when it was last seen; the tombstone of what is gone.
    create table $schema.source (
      id uuid primary key,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      kind text not null check (kind in ('database', 'volume')),
      resource_id uuid not null,
      name text not null,
      slug text not null,
      engine text not null,
      version text not null,
      application_id uuid,
      application_name text,
      mount_path text,
      -- Sealed: what it is made again from.
      blueprint text,
      deleted_at timestamptz(3),
      unique (kind, resource_id)
    );
    create index source_project on $schema.source (project_id);
    create index source_application on $schema.source (application_id) where application_id is not null;
    create table $schema.config (
      id uuid primary key,
      source_id uuid not null references $schema.source (id) on delete restrict,
      destination_id uuid not null references $schema.destination (id) on delete restrict,
      schedule text not null,
      time_zone text not null,
      drill_schedule text not null,
      prefix text not null,
      keep_latest integer,
      enabled boolean not null,
      quiesce boolean not null,
      databases text[] not null,
      last_run_at timestamptz(3),
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null
    );
    create index config_source on $schema.config (source_id);
    create index config_destination on $schema.config (destination_id);
    create table $schema.encryption_key (
      id uuid primary key,
      recipient text not null,
      -- Sealed.
      identity text not null,
      created_at timestamptz(3) not null
    );
    create table $schema.backup (
      id uuid primary key,
      source_id uuid not null references $schema.source (id) on delete restrict,
      config_id uuid references $schema.config (id) on delete set null,
      -- Null: on this machine.
      destination_id uuid references $schema.destination (id) on delete restrict,
      -- Without a destination: in the bucket of the platform.
      in_platform_store boolean not null default false,
      status text not null check (status in ('running', 'succeeded', 'failed')),
      started_at timestamptz(3) not null,
      -- When a worker took it up; null while it waits for one.
      begun_at timestamptz(3),
      finished_at timestamptz(3),
      -- Of the file, from before its first byte.
      key text,
      -- Whether there is, or may be, a file under that key.
      has_file boolean not null default false,
      version text not null,
      format text,
      databases text[] not null,
      quiesce boolean not null,
      -- How long the dump is, before it was compressed.
      raw_bytes bigint not null default 0,
      size_bytes bigint not null default 0,
      -- Of the file.
      sha256 text,
      key_id uuid references $schema.encryption_key (id) on delete restrict,
      rows bigint,
      error text,
      log text not null default '',
      proof text not null default 'unproven' check (proof in ('unproven', 'running', 'proven', 'failed')),
      proof_at timestamptz(3),
      proof_ms integer,
      proof_rows bigint,
      proof_detail text,
      proof_error text,
      deleting_at timestamptz(3)
    );
    create unique index backup_running on $schema.backup (source_id) where status = 'running';
    create index backup_source on $schema.backup (source_id, started_at desc, id desc);
    create index backup_config on $schema.backup (config_id, started_at desc, id desc) where config_id is not null;
    create index backup_destination on $schema.backup (destination_id) where destination_id is not null;
    create table $schema.restore (
      id uuid primary key,
      -- What is restored into.
      source_id uuid not null references $schema.source (id) on delete restrict,
      backup_id uuid not null,
      status text not null check (status in ('running', 'succeeded', 'failed')),
      started_at timestamptz(3) not null,
      begun_at timestamptz(3),
      -- What was in its target is gone since: it is not begun again.
      restored_at timestamptz(3),
      -- How often it was taken up.
      attempts integer not null default 0,
      finished_at timestamptz(3),
      error text,
      log text not null default ''
    );
    create unique index restore_running on $schema.restore (source_id) where status = 'running';
    create index restore_source on $schema.restore (source_id, started_at desc, id desc);
    create index restore_backup on $schema.restore (backup_id) where status = 'running';
  `
}
