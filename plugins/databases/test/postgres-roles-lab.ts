import type { Test } from 'tap'
import { backedUp, backupOf, restored } from './backup-lab.js'
import { createDatabase, type Lab, type Made, runIn, startLab, untilRunning } from './lab.js'
import { writeAsBefore } from './postgres-before.js'
import { drilled } from './postgres-lab.js'

type Sql = (text: string, database?: string) => Promise<string>

/** What its own user is told by its server. */
export async function sqlOf({ k, ann }: Lab, made: Made): Promise<Sql> {
  const { user, password } = (await ann.get(`${made.path}/credentials/reveal`)).body.credentials
  return async (text, database = 'postgres') =>
    (
      await runIn(
        k,
        made.id,
        [
          'psql',
          '-X',
          '-h',
          made.slug,
          '-U',
          user,
          '-d',
          database,
          '-A',
          '-t',
          '-q',
          '-v',
          'ON_ERROR_STOP=1',
          '-c',
          text
        ],
        { PGPASSWORD: password }
      )
    ).trim()
}

/** Everything that names a role, and what only superusers may own. */
const inServer = [
  'create role "odd, ""name"""',
  "create role alice login password 'alice-secret'; create role dba superuser login password 'dba-secret'",
  'create role staff; create role auditor; create role reader; create role settled; create role mapped; create role fallen superuser',
  'grant staff to alice with admin option; grant auditor to dba; grant staff to "odd, ""name"""',
  "alter role alice set work_mem = '6MB'",
  'create database stock owner alice'
]
const inStock = [
  "create table kept (n integer, t text); alter table kept owner to alice; insert into kept values (1, 'GRANT x TO ghost;'), (2, E'ALTER TABLE kept OWNER TO ghost;\\nALTER TABLE kept OWNER TO ghost;\\n\\\\.'), (3, null)",
  'create table own (n integer); insert into own values (1)',
  'create table shared (n integer); alter table shared owner to staff; insert into shared values (7)',
  'create materialized view seen as select n from shared; alter materialized view seen owner to alice',
  'create materialized view owned as select n from kept',
  'grant select on kept to auditor with grant option; grant update (n) on kept to "odd, ""name"""',
  'set session authorization auditor; grant select on kept to reader',
  'alter default privileges for role alice grant select on tables to auditor',
  'create policy chosen on kept to auditor, reader using (true)',
  "create function told() returns text language sql as $$ select '\nGRANT x TO ghost;\nGRANT x TO none;\nALTER TABLE kept OWNER TO ghost;\n'::text $$",
  'create function noticed() returns event_trigger language plpgsql as $$ begin end $$',
  'create event trigger mine on ddl_command_end execute function noticed()',
  'create event trigger hers on ddl_command_end execute function noticed(); alter event trigger hers owner to dba',
  'create event trigger former on ddl_command_end execute function noticed(); alter event trigger former owner to fallen',
  'create publication everything for all tables',
  'create foreign data wrapper wrapped; create server far foreign data wrapper wrapped; create user mapping for mapped server far',
  "alter role settled in database stock set work_mem = '5MB'"
]

const asks = {
  rows: "select (select count(*) from kept) || ' ' || (select n from seen) || ' ' || (select count(*) from owned)",
  kept: "select tableowner || ' ' || (select array_agg(roles order by roles)::text from pg_policies) from pg_tables where tablename = 'kept'",
  rights:
    "select has_table_privilege('reader', 'kept', 'select') || ' ' || has_column_privilege('odd, \"name\"', 'kept', 'n', 'update')",
  defaults: 'select defaclrole::regrole from pg_default_acl',
  owners:
    "select (select evtowner::regrole from pg_event_trigger where evtname = 'mine') || ' ' || (select evtowner::regrole from pg_event_trigger where evtname = 'hers') || ' ' || (select pubowner::regrole from pg_publication where puballtables) || ' ' || (select fdwowner::regrole from pg_foreign_data_wrapper) || ' ' || (select relowner::regrole from pg_class where relname = 'own')",
  fallen:
    "select evtowner::regrole || ' ' || rolsuper from pg_event_trigger join pg_roles r on r.oid = evtowner where evtname = 'former'",
  mapped: 'select usename from pg_user_mappings',
  settled: 'select setconfig::text from pg_db_role_setting where setdatabase <> 0'
} as const
type Ask = keyof typeof asks

export const asked = async (sql: Sql): Promise<Record<Ask, string>> => {
  const entries = await Promise.all(
    Object.entries(asks).map(async ([ask, text]) => [ask, await sql(text, 'stock')] as const)
  )
  return Object.fromEntries(entries) as Record<Ask, string>
}

export const members = `select string_agg(m.roleid::regrole || '>' || m.member::regrole || case when m.admin_option then '!' else '' end, ' ' order by m.roleid::regrole::text, m.member::regrole::text)
  from pg_auth_members m where m.roleid >= 16384`
/** Who else may sign in, who else is a superuser, and what a restore would leave. */
export const others = `select coalesce((select string_agg(rolname, ' ' order by rolname) from pg_authid where rolpassword is not null and rolname <> current_user), 'nobody')
  || '; ' || coalesce((select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper and rolname <> current_user), 'nobody')
  || '; ' || (select count(*) from pg_roles where rolname like 'busbar%' or rolname = 'ghost')
  || '; ' || (select rolsuper and rolcanlogin from pg_roles where rolname = current_user)`

/** A server with all of that, and its backups; `…Before` as they were written before. */
export async function withRoles(t: Test, version: string) {
  const lab = await startLab(t)
  const made = await createDatabase(lab, { type: 'postgres', version })
  const sql = await sqlOf(lab, made)
  for (const text of inServer) await sql(text)
  for (const text of inStock) await sql(text, 'stock')
  const stop = writeAsBefore(t)
  const allBefore = await backedUp(lab, made)
  const someBefore = await backupOf(lab, made, ['stock'])
  t.match(someBefore, { status: 'succeeded' }, `${someBefore.error}`)
  stop()
  const before = { asked: await asked(sql), others: await sql(others) }

  await sql('alter role fallen nosuperuser')
  const all = await backedUp(lab, made)
  const some = await backupOf(lab, made, ['stock'])
  t.match(some, { status: 'succeeded' }, `${some.error}`)
  const restore = async (t: Test, target: Made, id: string): Promise<Sql> => {
    const ended = await restored(lab, target, id, { from_other: true })
    t.match(ended, { status: 'succeeded' }, `${ended.error} ${ended.log}`)
    await untilRunning(lab.ann, target.path)
    return await sqlOf(lab, target)
  }
  const proven = async (t: Test, target: Made, id: string): Promise<void> => {
    const found = await drilled(lab, target, id)
    t.match(found, { status: 'proven' }, JSON.stringify(found))
  }
  return {
    lab,
    made,
    sql,
    backups: { all, some: some.id, allBefore, someBefore: someBefore.id },
    was: { asked: await asked(sql), others: await sql(others), members: await sql(members) },
    before,
    restore,
    proven
  }
}
