import { applicationTable } from 'busbar/api/applications'
import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

export const createVariables: Migration = {
  name: '001-create-variables',
  phase: 'expand',
  sql: `
    create table $schema.variable (
      id uuid primary key,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      application_id uuid references ${applicationTable.reference} on delete restrict,
      key text collate "C" not null,
      value text not null,
      is_secret boolean not null default false,
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null
    );
    create unique index variable_of_project on $schema.variable (project_id, key) where application_id is null;
    create unique index variable_of_application on $schema.variable (application_id, key) where application_id is not null;
  `
}
