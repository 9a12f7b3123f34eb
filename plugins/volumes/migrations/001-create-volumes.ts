import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

/** What applications have, and what was made of it on the engine: the second outlives the first where its files are kept. */
export const createVolumes: Migration = {
  name: '001-create-volumes',
  phase: 'expand',
  sql: `
    create table $schema.volume (
      id uuid primary key,
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      name text collate "C" not null,
      mount_path text collate "C" not null,
      engine_name text collate "C" not null,
      size_bytes bigint,
      measured_at timestamptz(3),
      created_at timestamptz(3) not null,
      deleting_at timestamptz
    );
    create unique index volume_name on $schema.volume (application_id, name);
    create unique index volume_path on $schema.volume (application_id, mount_path) where deleting_at is null;
    create index volume_engine_name on $schema.volume (engine_name);

    create table $schema.engine_volume (
      name text collate "C" primary key,
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      -- Its files are to go as soon as no container has it any more.
      discarded_at timestamptz(3)
    );
    create index engine_volume_application on $schema.engine_volume (application_id);
    create index engine_volume_discarded on $schema.engine_volume (discarded_at) where discarded_at is not null;
  `
}
