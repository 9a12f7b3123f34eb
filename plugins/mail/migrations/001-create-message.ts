import type { Migration } from 'busbar/sdk'

export const createMessage: Migration = {
  name: '001-create-message',
  phase: 'expand',
  sql: `
create table $schema.message (
  id uuid primary key,
  -- encrypted: a message holds links that let their reader in
  content text not null,
  expires_at timestamptz(3),
  created_at timestamptz(3) not null
);
`
}
