import type { Migration } from 'busbar/sdk'

export const createAccounts: Migration = {
  name: '001-create-accounts',
  phase: 'expand',
  sql: `
create table $schema.instance (
  key text primary key,
  value text not null
);

create table $schema.user (
  id uuid primary key,
  email text not null unique,
  username text not null,
  first_name text not null,
  last_name text not null,
  role text not null check (role in ('member', 'admin')),
  password_hash text not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  last_active_at timestamptz(3) not null
);

create table $schema.session (
  id uuid primary key,
  user_id uuid not null references $schema.user (id) on delete cascade,
  secret_hash text not null unique,
  secret_expires_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  ip_address text not null,
  user_agent text not null,
  created_at timestamptz(3) not null,
  last_used_at timestamptz(3) not null
);
create index session_owner on $schema.session (user_id);

create table $schema.refresh_secret (
  hash text primary key,
  session_id uuid not null references $schema.session (id) on delete cascade,
  expires_at timestamptz(3) not null,
  spent_at timestamptz(3)
);
create index refresh_secret_session on $schema.refresh_secret (session_id);

create table $schema.access_token (
  id uuid primary key,
  user_id uuid not null references $schema.user (id) on delete cascade,
  name text not null,
  hash text not null unique,
  scope text not null check (scope in ('metrics', 'read', 'deploy', 'write')),
  role_at_issue text not null check (role_at_issue in ('member', 'admin')),
  pinned boolean not null,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  created_at timestamptz(3) not null
);
create index access_token_owner on $schema.access_token (user_id);

create table $schema.access_token_pin (
  token_id uuid not null references $schema.access_token (id) on delete cascade,
  -- no foreign key: projects come after users
  project_id uuid not null,
  primary key (token_id, project_id)
);
create index access_token_pin_project on $schema.access_token_pin (project_id);

create table $schema.lock_out (
  account text not null,
  address text not null,
  attempts integer not null,
  ends_at timestamptz(3) not null,
  primary key (account, address)
);
create index lock_out_end on $schema.lock_out (ends_at);
`
}
