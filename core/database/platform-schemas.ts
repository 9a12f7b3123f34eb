import type { BulkConnection } from 'busbar/sdk'

/**
 * The schemas of a platform's database that are its own: of the kernel, its queue, and of every plugin that has ever been
 * migrated. Others may have theirs in the same database. Empty where no platform has been at work.
 */
export async function platformSchemas(connection: Pick<BulkConnection, 'query'>): Promise<string[]> {
  const [found] = await connection.query<{ plugins: boolean; migrations: boolean }>(
    `select to_regclass('kernel.plugin') is not null as plugins, to_regclass('kernel.migration') is not null as migrations`
  )
  const known = [
    ...(found?.plugins === true ? ['select id from kernel.plugin'] : []),
    ...(found?.migrations === true ? ['select plugin from kernel.migration'] : [])
  ]
  if (known.length === 0) return []
  const rows = await connection.query<{ name: string }>(
    `with known (id) as (${known.join(' union ')}), named (name) as (
      select 'kernel' union select 'graphile_worker'
      union select replace(id, '-', '_') from known union select 'x_' || replace(id, '-', '_') from known
    )
    select n.nspname as name from pg_namespace n join named on named.name = n.nspname
    where n.nspname !~ '^pg_' and n.nspname not in ('public', 'information_schema') order by n.nspname`
  )
  return rows.map(({ name }) => name)
}
