import { userTable } from 'busbar/api/identity'
import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

export const createInbox: Migration = {
  name: '001-create-inbox',
  phase: 'expand',
  sql: `
    -- what was told, once for all whom it was told
    create table $schema.notice (
      id uuid primary key,
      type text not null,
      title text not null,
      body text not null,
      link text,
      -- shown to those alone who have access to it
      project_id uuid references ${projectTable.reference} on delete restrict,
      -- shown to those alone who are admins
      is_for_admins boolean not null,
      created_at timestamptz(3) not null
    );
    create index notice_age on $schema.notice (created_at);
    create index notice_project on $schema.notice (project_id) where project_id is not null;

    create table $schema.inbox (
      user_id uuid primary key references ${userTable.reference} on delete cascade,
      -- of the newest entry; it only grows, and whoever adds one holds the row until it is committed
      last_position bigint not null
    );

    create table $schema.entry (
      user_id uuid not null references $schema.inbox (user_id) on delete cascade,
      position bigint not null,
      notice_id uuid not null references $schema.notice (id) on delete cascade,
      -- that of the notice
      created_at timestamptz(3) not null,
      read_at timestamptz(3),
      primary key (user_id, position)
    );
    create unique index entry_notice on $schema.entry (notice_id, user_id);
    create index entry_newest on $schema.entry (user_id, created_at desc, notice_id desc);
    create index entry_unread on $schema.entry (user_id) where read_at is null;
  `
}
