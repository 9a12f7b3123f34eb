import type { Migration } from 'busbar/sdk'

export const createGreeting: Migration = {
  name: '001-create-greeting',
  phase: 'expand',
  sql: `
    create table $schema.greeting (
      id uuid primary key,
      message text not null,
      created_at timestamptz(3) not null
    );
    create index greeting_newest on $schema.greeting (created_at desc, id);
  `
}
