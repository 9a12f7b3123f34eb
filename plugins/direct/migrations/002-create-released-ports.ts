import type { Migration } from 'busbar/sdk'

export const createReleasedPorts: Migration = {
  name: '002-create-released-ports',
  phase: 'expand',
  // The lowest free port was taken before: a free one below another that is held has been in use.
  sql: `
    create table $schema.released_port (
      port integer primary key check (port between 1 and 65535),
      released_at timestamptz(3) not null
    );
    insert into $schema.released_port (port, released_at)
    select free, current_timestamp
    from generate_series(
      (select min(port) from $schema.address),
      (select max(port) from $schema.address)
    ) as free
    where not exists (select from $schema.address where port = free)`
}
