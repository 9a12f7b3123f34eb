import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

export const createLogs: Migration = {
  name: '001-create-logs',
  phase: 'expand',
  sql: `
    create table $schema.collector (
      is_only boolean primary key default true check (is_only),
      epoch integer not null default 0,
      next_ordinal bigint not null default 1
    );
    insert into $schema.collector default values;

    create table $schema.source (
      id uuid primary key,
      type text not null,
      application_id uuid references ${applicationTable.reference} on delete restrict,
      bytes bigint not null default 0
    );
    create index source_application on $schema.source (application_id);

    create table $schema.container (
      key integer primary key generated always as identity,
      source_id uuid not null references $schema.source on delete restrict,
      container_id text not null unique,
      deployment_id uuid,
      place text,
      ended_run text,
      lines bigint not null default 0,
      first_at timestamptz(3),
      last_at timestamptz(3),
      seen_at timestamptz(3) not null
    );
    create index container_source on $schema.container (source_id, last_at desc);

    create table $schema.chunk (
      ordinal bigint primary key,
      source_id uuid not null,
      container_key integer not null references $schema.container on delete restrict,
      lines integer not null,
      bytes integer not null,
      begins_at timestamptz(3) not null,
      ends_at timestamptz(3) not null,
      mask smallint not null,
      times text not null,
      kinds text not null,
      text text not null
    );
    create index chunk_latest on $schema.chunk (source_id, ends_at desc, ordinal desc);
    create index chunk_order on $schema.chunk (source_id, ordinal);
    create index chunk_container on $schema.chunk (container_key, ordinal);
    create index chunk_age on $schema.chunk (ends_at);
  `
}
