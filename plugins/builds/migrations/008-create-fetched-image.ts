import type { Migration } from 'busbar/sdk'

export const createFetchedImage: Migration = {
  name: '008-create-fetched-image',
  phase: 'expand',
  // The holder is an application, or empty: everybody. The version is a tag or a digest.
  sql: `
    create table $schema.fetched_image (
      holder text not null,
      repository text not null,
      version text not null,
      digest text not null,
      handle text not null,
      layers text[] not null,
      fetched_at timestamptz not null,
      primary key (holder, repository, version)
    );
    create index fetched_image_handle on $schema.fetched_image (handle);
    create table $schema.fetch_under_way (
      handle text primary key,
      begun_at timestamptz not null
    );
  `
}
