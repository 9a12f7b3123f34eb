import type { Migration } from 'busbar/sdk'

export const createFetchedImage: Migration = {
  name: '008-create-fetched-image',
  phase: 'expand',
  // The holder is an application, or empty: everybody. The version is a tag or a digest.
  sql: `
    create table $schema.fetched_image (
      handle text primary key,
      holder text not null,
      repository text not null,
      digest text not null,
      layers text[] not null,
      keep_until timestamptz not null
    );
    create index fetched_image_first_layer on $schema.fetched_image ((layers[1]));
    create table $schema.fetched_name (
      holder text not null,
      repository text not null,
      version text not null,
      handle text not null references $schema.fetched_image on delete cascade,
      fetched_at timestamptz not null,
      primary key (holder, repository, version)
    );
    create index fetched_name_handle on $schema.fetched_name (handle);
    create table $schema.fetched_image_use (
      application_id text not null,
      handle text not null references $schema.fetched_image on delete cascade,
      primary key (application_id, handle)
    );
    create index fetched_image_use_handle on $schema.fetched_image_use (handle);
    create table $schema.image_to_remove (
      handle text primary key,
      due_at timestamptz not null,
      is_being_removed boolean not null default false
    );
  `
}
