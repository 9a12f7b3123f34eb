import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Test } from 'tap'

/** An empty folder for an installation. */
export async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'busbar-faults-'))
  await chmod(made, 0o711)
  t.teardown(async () => {
    await rm(made, { recursive: true, force: true })
  })
  return made
}

/** A table of a plugin's schema that takes a while to copy. */
export const fill = (megabytes: number): string => `
  create table platform_backups.filler (id integer primary key, text text not null);
  alter table platform_backups.filler alter column text set storage external;
  insert into platform_backups.filler
  select i, (select string_agg(md5((i * 32 + n)::text), '') from generate_series(1, 31 + i * 0) n) from generate_series(1, ${megabytes * 1000}) i`

/** A connection of the test's own. */
export async function withClient<T>(url: string, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
