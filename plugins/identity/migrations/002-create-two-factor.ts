import type { Migration } from 'busbar/sdk'

export const createTwoFactor: Migration = {
  name: '002-create-two-factor',
  phase: 'expand',
  sql: `
create table $schema.totp (
  user_id uuid primary key references $schema.user (id) on delete cascade,
  secret text not null,
  enabled_at timestamptz(3),
  last_step bigint
);

create table $schema.recovery_code (
  user_id uuid not null references $schema.totp (user_id) on delete cascade,
  hash text not null,
  primary key (user_id, hash)
);

create table $schema.login_challenge (
  hash text primary key,
  user_id uuid not null references $schema.user (id) on delete cascade,
  attempts integer not null,
  expires_at timestamptz(3) not null
);
create index login_challenge_owner on $schema.login_challenge (user_id);
`
}
