import { userTable } from 'busbar/api/identity'
import type { Migration } from 'busbar/sdk'

export const createProjects: Migration = {
  name: '001-create-projects',
  phase: 'expand',
  sql: `
    create table $schema.project (
      id uuid primary key,
      name text not null,
      slug text not null,
      user_id uuid not null references ${userTable.reference} on delete restrict,
      server_id uuid,
      shared boolean not null default false,
      last_deployed_at timestamptz(3),
      deleting_at timestamptz(3),
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null,
      constraint project_slug_key unique (slug)
    );
    create index project_newest on $schema.project (created_at desc, id desc);
    create index project_owner on $schema.project (user_id);
  `
}
