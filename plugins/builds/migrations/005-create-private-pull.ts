import type { Migration } from 'busbar/sdk'

export const createPrivatePull: Migration = {
  name: '005-create-private-pull',
  phase: 'expand',
  sql: `
    create table $schema.private_pull (
      name text not null,
      application_id uuid not null,
      repository text not null,
      before_id text,
      begun_at timestamptz not null,
      primary key (name, application_id)
    );
    create index on $schema.private_pull (repository);
  `
}
