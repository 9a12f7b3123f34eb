import type { Migration } from 'busbar/sdk'

export const createInvitations: Migration = {
  name: '003-create-invitations',
  phase: 'expand',
  sql: `
create table $schema.password_reset (
  hash text primary key,
  user_id uuid not null references $schema.user (id) on delete cascade,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3),
  -- a newer one was asked for, or the password was changed otherwise
  replaced_at timestamptz(3)
);
create index password_reset_owner on $schema.password_reset (user_id);

create table $schema.invitation (
  id uuid primary key,
  email text not null,
  role text not null check (role in ('member', 'admin')),
  hash text not null unique,
  invited_by_user_id uuid not null references $schema.user (id) on delete cascade,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  accepted_at timestamptz(3)
);
create unique index invitation_pending on $schema.invitation (email) where accepted_at is null;
create index invitation_inviter on $schema.invitation (invited_by_user_id);

-- No row: the defaults.
create table $schema.alert_preference (
  user_id uuid primary key references $schema.user (id) on delete cascade,
  deploy_failures boolean not null,
  deploy_success boolean not null,
  build_failures boolean not null,
  quota_threshold boolean not null,
  quota_threshold_percent integer not null check (quota_threshold_percent between 1 and 100)
);

create table $schema.access_token_use (
  token_id uuid not null references $schema.access_token (id) on delete cascade,
  -- GET /api/projects/{projectId}
  operation text not null,
  -- null where no project is concerned; no foreign key: projects come after users
  project_id uuid,
  last_used_at timestamptz(3) not null,
  unique nulls not distinct (token_id, operation, project_id)
);
`
}
