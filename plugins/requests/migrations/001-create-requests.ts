import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

export const createRequests: Migration = {
  name: '001-create-requests',
  phase: 'expand',
  sql: `
    -- of the newest row; it only grows, and whoever adds rows holds it until they are committed, so that positions are seen in order
    create table $schema.progress (
      is_only boolean primary key default true check (is_only),
      last_position bigint not null default 0
    );
    insert into $schema.progress default values;

    create table $schema.request (
      position bigint primary key,
      id uuid not null,
      application_id uuid references ${applicationTable.reference} on delete restrict,
      hostname text not null,
      method text not null,
      path text not null,
      status_code smallint not null,
      latency_ms integer not null,
      request_size bigint,
      response_size bigint,
      client_ip text,
      user_agent text,
      recorded_at timestamptz(3) not null
    );
    create unique index request_id on $schema.request (id);
    create index request_newest on $schema.request (recorded_at desc, position desc);
    create index request_failed on $schema.request (recorded_at desc, position desc) where status_code >= 400;
    create index request_application on $schema.request (application_id, recorded_at desc, position desc);
    create index request_application_order on $schema.request (application_id, position);

    -- up to where each access log was read; written with the rows that were read of it
    create table $schema.access_log (
      path text primary key,
      -- the number of the file; empty before any was read
      inode text not null default '',
      place bigint not null default 0,
      -- the place is within a line that is too long to be one
      is_mid_line boolean not null default false,
      -- a digest of the beginning of the file, by which it is told from another that got its number
      head_length integer not null default 0,
      head_digest text not null default '',
      -- when the file was written last, as nanoseconds since 1970: rotated ones follow each other by it
      changed_ns text not null default '0'
    );
  `
}
