import { userTable } from 'busbar/api/identity'
import type { Migration } from 'busbar/sdk'

export const createMembers: Migration = {
  name: '002-create-members',
  phase: 'expand',
  sql: `
    create table $schema.member (
      project_id uuid not null references $schema.project (id) on delete cascade,
      user_id uuid not null references ${userTable.reference} on delete cascade,
      role text not null,
      created_at timestamptz(3) not null,
      primary key (project_id, user_id)
    );
    create index member_user on $schema.member (user_id);
  `
}
