import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

/** Without a project it is the installation's. */
export const createAccounts: Migration = {
  name: '001-create-accounts',
  phase: 'expand',
  sql: `
    create table $schema.account (
      id uuid primary key,
      project_id uuid references ${projectTable.reference} on delete restrict,
      registry text collate "C" not null,
      username text not null,
      password text not null,
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null
    );
    create unique index account_of_project on $schema.account (project_id, registry) where project_id is not null;
    create unique index account_of_installation on $schema.account (registry) where project_id is null;
  `
}
