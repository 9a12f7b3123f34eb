import type { Migration } from 'busbar/sdk'

export const addInstallation: Migration = {
  name: '002-add-installation',
  phase: 'expand',
  sql: `
    -- One row, from the first archive on: by which its archives are told from those of other installations in the same place. It comes
    -- back with an archive, as who is restored from one goes on with what the former one has made.
    create table $schema.installation (
      single boolean primary key default true check (single),
      id uuid not null
    );
    -- Keys of uploads that have begun, of which there may be parts in the bucket until somebody has looked.
    create table $schema.left_upload (
      key text primary key
    );
  `
}
