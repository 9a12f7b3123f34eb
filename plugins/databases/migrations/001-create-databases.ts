import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

export const createDatabases: Migration = {
  name: '001-create-databases',
  phase: 'expand',
  sql: `
    create table $schema.database (
      id uuid primary key,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      name text not null,
      slug text not null unique,
      type text not null,
      version text not null,
      status text not null check (status in ('creating', 'running', 'stopped', 'failed', 'upgrading', 'backing_up')),
      status_detail text,
      -- What the platform is at; no other work is begun meanwhile, and events of the engine change no status.
      task text check (task in ('provision', 'upgrade', 'backup', 'restore')),
      -- What it did before a backup or a restore.
      status_before text,
      image text,
      image_reference text,
      image_name text,
      source_kind text,
      source_ref text,
      container_id text,
      container_port integer not null,
      data_dir text,
      backup_mode text not null,
      backup_command text,
      restore_command text,
      credentials text not null,
      cpu_limit double precision not null default 0,
      memory_limit bigint not null default 0,
      volume text not null,
      -- What was in it when it was measured last.
      volume_bytes bigint,
      -- The one before a restore, while the new one is not proven.
      former_volume text,
      is_external boolean not null default false,
      external_port integer unique,
      initialized_at timestamptz,
      stop_asked_at timestamptz,
      failure_told_at timestamptz,
      delete_backups boolean not null default false,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      deleting_at timestamptz
    );
    create index database_project on $schema.database (project_id, created_at desc, id desc);
  `
}
