import type { Migration } from 'busbar/sdk'

export const createImageFetch: Migration = {
  name: '009-create-image-fetch',
  phase: 'expand',
  // Several fetches of one image share its handle. Claimed: by the process that fetches, which says so again and again.
  sql: `
    create table $schema.image_fetch (
      id uuid primary key,
      handle text not null,
      application_id text not null,
      claimed_until timestamptz not null,
      may_come_until timestamptz not null,
      is_abandoned boolean not null default false
    );
    create index image_fetch_handle on $schema.image_fetch (handle);
    create index image_fetch_application on $schema.image_fetch (application_id) where is_abandoned;
  `
}
