import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

export const createAttachments: Migration = {
  name: '002-create-attachments',
  phase: 'expand',
  sql: `
    create table $schema.attachment (
      database_id uuid not null references $schema.database on delete restrict,
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      variables jsonb not null,
      created_at timestamptz not null,
      primary key (database_id, application_id)
    );
    create index attachment_application on $schema.attachment (application_id);
  `
}
