import type { Migration } from 'busbar/sdk'

/** What is usual takes PostgreSQL three to five times as long, for as many bytes. Not every server is built with it. */
export const compressFaster: Migration = {
  name: '002-compress-faster',
  phase: 'expand',
  sql: `
    do $do$
    begin
      if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
        alter table $schema.chunk alter column text set compression lz4, alter column times set compression lz4,
          alter column kinds set compression lz4;
      end if;
    end
    $do$`
}
