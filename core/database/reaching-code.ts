import type { PoolClient } from 'pg'
import type { Statements } from './statements.js'

/** Triggers and rules on tables of others, by id. */
export const onOthersOf = `
  select t.oid, format('the trigger %I on %I.%I', t.tgname, n.nspname, c.relname) as what
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  where not t.tgisinternal and n.nspname <> $1 and c.relpersistence <> 't'
  union all
  select r.oid, format('the rule %I on %I.%I', r.rulename, n.nspname, c.relname)
  from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
  where r.rulename <> '_RETURN' and n.nspname <> $1 and c.relpersistence <> 't'`

/**
 * Code that runs when rows go or change with those of others: on tables whose foreign keys say so, to a table of
 * another schema or, where there is such a key, within this one. 8 and 16 in `tgtype`, 4 and 2 in `ev_type`: on delete, on
 * update. A row that changes is checked, computed and indexed anew.
 */
export const withOthersOf = `
  with key as (
    select k.conrelid, f.relnamespace <> c.relnamespace as leaves, k.confdeltype = 'c' as deletes,
      k.confdeltype in ('n', 'd') or k.confupdtype in ('c', 'n', 'd') as updates
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class f on f.oid = k.confrelid
    where k.contype = 'f' and c.relnamespace = to_regnamespace($1)
      and (k.confdeltype in ('c', 'n', 'd') or k.confupdtype in ('c', 'n', 'd'))
  ), reached as (
    select c.oid, format('%I.%I', $1::text, c.relname) as name, bool_or(key.deletes) as deletes, bool_or(key.updates) as updates
    from key join pg_class c on c.oid = key.conrelid
    where key.leaves or exists (select from key where leaves) group by 1, 2
  ), own as (
    select p.oid from pg_proc p where p.pronamespace = to_regnamespace($1)
  )
  select format('the trigger %I on %s', t.tgname, name) as what, format('alter table %s disable trigger %I', name, t.tgname) as undo
  from pg_trigger t join reached on reached.oid = t.tgrelid
  where not t.tgisinternal and t.tgenabled <> 'D' and ((deletes and t.tgtype & 8 > 0) or (updates and t.tgtype & 16 > 0))
  union
  select format('the rule %I on %s', r.rulename, name), format('alter table %s disable rule %I', name, r.rulename)
  from pg_rewrite r join reached on reached.oid = r.ev_class
  where r.ev_enabled <> 'D' and ((deletes and r.ev_type = '4') or (updates and r.ev_type = '2'))
  union
  select format('a function in %s', pg_describe_object(d.classid, d.objid, 0)), null from pg_depend d join own on own.oid = d.refobjid
  where d.refclassid = 'pg_proc'::regclass and (
    (d.classid = 'pg_constraint'::regclass and exists (
      select from pg_constraint k join reached on reached.oid = k.conrelid where k.oid = d.objid and updates))
    or (d.classid = 'pg_attrdef'::regclass and exists (
      select from pg_attrdef a join reached on reached.oid = a.adrelid where a.oid = d.objid and updates))
    or (d.classid = 'pg_class'::regclass and exists (
      select from pg_index i join reached on reached.oid = i.indrelid where i.indexrelid = d.objid and updates)))
  order by 1`

/**
 * What else runs functions of the schema in statements of others, or brings their statements to its tables: on tables of others, and
 * for all of the database. Event triggers are not told of each other, so one is found only with the next that is made, or when the
 * plugin starts.
 */
export const reachingOthersOf = `
  with used as (
    select d.classid, d.objid from pg_depend d join pg_proc p on p.oid = d.refobjid
    where d.refclassid = 'pg_proc'::regclass and p.pronamespace = to_regnamespace($1)
  ), other as (
    select c.oid, format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname <> $1 and c.relpersistence <> 't'
  )
  select format('the constraint %I on %s', k.conname, name) as what, format('alter table %s drop constraint %I', name, k.conname) as undo
  from used join pg_constraint k on k.oid = used.objid join other on other.oid = k.conrelid
  where used.classid = 'pg_constraint'::regclass
  union
  select format('the value of the column %I of %s', a.attname, name),
    format('alter table %s alter column %I drop %s', name, a.attname, case a.attgenerated when '' then 'default' else 'expression' end)
  from used join pg_attrdef d on d.oid = used.objid join other on other.oid = d.adrelid
    join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
  where used.classid = 'pg_attrdef'::regclass
  union
  select format('the index %s on %s', used.objid::regclass, name), format('drop index %s', used.objid::regclass)
  from used join pg_index i on i.indexrelid = used.objid join other on other.oid = i.indrelid
  where used.classid = 'pg_class'::regclass
  union
  select format('the policy %I on %s', l.polname, name), format('drop policy %I on %s', l.polname, name)
  from used join pg_policy l on l.oid = used.objid join other on other.oid = l.polrelid
  where used.classid = 'pg_policy'::regclass
  union
  select format('the rule %I on %s', r.rulename, name), format('alter table %s disable rule %I', name, r.rulename)
  from used join pg_rewrite r on r.oid = used.objid join other on other.oid = r.ev_class
  where used.classid = 'pg_rewrite'::regclass and r.rulename <> '_RETURN' and r.ev_enabled <> 'D'
  union
  select format('the event trigger %I', e.evtname), format('alter event trigger %I disable', e.evtname)
  from used join pg_event_trigger e on e.oid = used.objid
  where used.classid = 'pg_event_trigger'::regclass and e.evtenabled <> 'D'
  union
  select format('the inheritance of %s from %s', i.inhrelid::regclass, i.inhparent::regclass),
    case when child.relispartition then format('alter table %s detach partition %s', i.inhparent::regclass, i.inhrelid::regclass)
    else format('alter table %s no inherit %s', i.inhrelid::regclass, i.inhparent::regclass) end
  from pg_inherits i join pg_class child on child.oid = i.inhrelid join pg_class parent on parent.oid = i.inhparent
  where child.relkind in ('r', 'p', 'f') and child.relpersistence <> 't' and parent.relnamespace <> child.relnamespace
    and to_regnamespace($1) in (child.relnamespace, parent.relnamespace)
  order by 1`

export const ofOthers = (what: string): string =>
  `it makes ${what}, a table of others: leave that out, and use events and services`
export const withOthers = (what: string): string =>
  `${what} would run in statements of others, as rows of its table go or change with theirs: make the foreign key "on delete restrict" and remove the rows in a step of the removal, or leave that out`

export const reachingOthers = (what: string): string =>
  `${what} would bring code or tables of the plugin into statements of others: leave that out, and use events and services`

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
  if (added !== undefined) throw new Error(ofOthers(added.what))
  const [reaching] = (await client.query<{ what: string }>(reachingOthersOf, [schema])).rows
  if (reaching !== undefined) throw new Error(reachingOthers(reaching.what))
  const [reached] = (await client.query<{ what: string }>(withOthersOf, [schema])).rows
  if (reached !== undefined) throw new Error(withOthers(reached.what))
}

/** Triggers with a function of the schema on tables of others. */
const ownOnOthers = `
  select format('the trigger %I on %I.%I', t.tgname, n.nspname, c.relname) as what,
    format('alter table %I.%I disable trigger %I', n.nspname, c.relname, t.tgname) as undo
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace join pg_proc p on p.oid = t.tgfoid
  where not t.tgisinternal and t.tgenabled <> 'D' and p.pronamespace = to_regnamespace($1) and n.nspname <> $1 and c.relpersistence <> 't'`

/** Disables, or removes where nothing can be disabled, what of a third-party plugin would run in statements of others, and throws when there was such. For what is there already. */
export async function disableReachingCode(database: Statements, schema: string): Promise<void> {
  type Found = { readonly what: string; readonly undo: string | null }
  const onOthers = await database.query<Found>(ownOnOthers, [schema])
  const reached = await database.query<Found>(withOthersOf, [schema])
  const reaching = await database.query<Found>(reachingOthersOf, [schema])
  for (const { undo } of [...onOthers, ...reaching, ...reached]) if (undo !== null) await database.query(undo)
  if (onOthers[0] !== undefined) throw new Error(ofOthers(onOthers[0].what))
  if (reaching[0] !== undefined) throw new Error(reachingOthers(reaching[0].what))
  if (reached[0] !== undefined) throw new Error(withOthers(reached[0].what))
}

/** Triggers and rules on tables of others, before a migration. */
export async function codeOnOthers(client: PoolClient, schema: string): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ oid: number }>(onOthersOf, [schema])
  return new Set(rows.map(({ oid }) => oid))
}
