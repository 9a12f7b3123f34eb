import type { PoolClient } from 'pg'

/** Triggers and rules on tables of others, by id. */
const onOthersOf = `
  select t.oid, format('the trigger %I on %I.%I', t.tgname, n.nspname, c.relname) as what
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  where not t.tgisinternal and n.nspname <> $1
  union all
  select r.oid, format('the rule %I on %I.%I', r.rulename, n.nspname, c.relname)
  from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
  where r.rulename <> '_RETURN' and n.nspname <> $1`

/**
 * Triggers that fire when rows go or change with those of others: on tables whose foreign keys say so, to a table of
 * another schema or, where there is such a key, within this one. 8 and 16 in `tgtype`: on delete, on update.
 */
const withOthersOf = `
  with key as (
    select k.conrelid, f.relnamespace <> c.relnamespace as leaves, k.confdeltype = 'c' as deletes,
      k.confdeltype in ('n', 'd') or k.confupdtype in ('c', 'n', 'd') as updates
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class f on f.oid = k.confrelid
    where k.contype = 'f' and c.relnamespace = to_regnamespace($1)
      and (k.confdeltype in ('c', 'n', 'd') or k.confupdtype in ('c', 'n', 'd'))
  )
  select distinct format('the trigger %I on %I.%I', t.tgname, $1::text, c.relname) as what
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join key on key.conrelid = c.oid
  where not t.tgisinternal and (key.leaves or exists (select from key where leaves))
    and ((key.deletes and t.tgtype & 8 > 0) or (key.updates and t.tgtype & 16 > 0))
  order by 1`

/**
 * Refuses what a third-party plugin's migration makes run in the statements of others, on their connections: it could
 * set there what is in force for whoever has the connection next. `before` is what there was already.
 */
export async function refuseReachingCode(
  client: PoolClient,
  schema: string,
  before: ReadonlySet<number>
): Promise<void> {
  const { rows } = await client.query<{ oid: number; what: string }>(onOthersOf, [schema])
  const [added] = rows.filter(({ oid }) => !before.has(oid))
  if (added !== undefined)
    throw new Error(`it makes ${added.what}, a table of others: leave that out, and use events and services`)
  const [reached] = (await client.query<{ what: string }>(withOthersOf, [schema])).rows
  if (reached !== undefined)
    throw new Error(
      `${reached.what} would fire in statements of others, as rows of its table go or change with theirs: make the foreign key "on delete restrict" and remove the rows in a step of the removal, or leave the trigger out`
    )
}

/** Triggers and rules on tables of others, before a migration. */
export async function codeOnOthers(client: PoolClient, schema: string): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ oid: number }>(onOthersOf, [schema])
  return new Set(rows.map(({ oid }) => oid))
}
