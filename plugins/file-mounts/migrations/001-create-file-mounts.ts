import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

export const createFileMounts: Migration = {
  name: '001-create-file-mounts',
  phase: 'expand',
  sql: `
    create table $schema.file_mount (
      id uuid primary key,
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      mount_path text collate "C" not null,
      -- Sealed, whether it is secret or not.
      content text not null,
      -- Of the content, in UTF-8.
      bytes integer not null,
      is_secret boolean not null,
      -- As chmod takes it, in octal digits.
      file_mode text not null,
      created_at timestamptz(3) not null
    );
    create unique index file_mount_path on $schema.file_mount (application_id, mount_path);
  `
}
