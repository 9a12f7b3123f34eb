import type { Migration } from 'busbar/sdk'

export const createAddresses: Migration = {
  name: '001-create-addresses',
  phase: 'expand',
  sql: `
    create table $schema.address (
      application_id uuid primary key,
      port integer not null unique check (port between 1 and 65535),
      deployment_id uuid,
      container_id text,
      target_host text,
      target_port integer,
      is_running boolean not null,
      updated_at timestamptz(3) not null
    )`
}
