import type { Migration } from 'busbar/sdk'

export const createImageClaim: Migration = {
  name: '010-create-image-claim',
  phase: 'expand',
  // A claim dies with its preparation, and that with its process, which says again and again that it is under way.
  sql: `
    create table $schema.preparation (
      deployment_id text primary key,
      application_id text not null,
      claimed_until timestamptz not null
    );
    create table $schema.image_claim (
      deployment_id text not null references $schema.preparation on delete cascade,
      handle text not null,
      primary key (deployment_id, handle)
    );
    create index image_claim_handle on $schema.image_claim (handle);
    alter table $schema.fetched_image add column used_at timestamptz not null default now();
    alter table $schema.image_to_remove add column used_at timestamptz;
    alter table $schema.image_to_remove add column removing_until timestamptz;
  `
}
