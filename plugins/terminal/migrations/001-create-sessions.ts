import type { Migration } from 'busbar/sdk'

/**
 * What must be known of a session when its process has gone. It refers to nothing, and stays until it is certain that nothing of
 * it runs any more: also when its user, application or project has gone.
 */
export const createSessions: Migration = {
  name: '001-create-sessions',
  phase: 'expand',
  sql: `
    create table $schema.session (
      id text collate "C" primary key,
      user_id uuid not null,
      user_email text not null,
      user_username text not null,
      -- The sign-in that opened it: no other one of the same user gets to it.
      login_session_id uuid not null,
      ip_address text not null,
      project_id uuid not null,
      application_id uuid not null,
      container_id text not null,
      terminal_id text not null,
      shell text not null,
      created_at timestamptz(3) not null,
      -- Null until somebody attaches: nothing runs before.
      opened_at timestamptz(3),
      -- Which run of the plugin has it, and that this goes on.
      process_id uuid,
      beat bigint not null default 0,
      ended_at timestamptz(3)
    );
    create index session_by_user on $schema.session (user_id);
    create index session_by_process on $schema.session (process_id);
  `
}
