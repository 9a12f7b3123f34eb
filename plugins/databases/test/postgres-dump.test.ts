import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, runIn, startLab, untilRunning } from './lab.js'
import { untilUpgraded } from './postgres-lab.js'

test('an upgrade of PostgreSQL leaves out no database, and nothing of those that every server has', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann } = lab
  const made = await createDatabase(lab, { type: 'postgres', version: '14' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const { user, password } = body.credentials as { user: string; password: string }
  const sql = async (text: string, database = 'postgres') =>
    await runIn(
      lab.k,
      made.id,
      ['psql', '-h', '127.0.0.1', '-U', user, '-d', database, '-A', '-t', '-q', '-c', text],
      { PGPASSWORD: password }
    )
  for (const text of [
    'create role reporter',
    'create database closed allow_connections false',
    "alter database postgres set statement_timeout = '7s'",
    'alter database postgres set search_path = "$user", "odd, name", public',
    "alter database postgres set \"lab.flag\" = 'it''s'",
    'alter database postgres set default_transaction_read_only = on',
    "alter role reporter in database postgres set work_mem = '5MB'",
    "alter database template1 set work_mem = '6MB'",
    "comment on database postgres is E'it''s\\n\\\\x'",
    'revoke connect on database postgres from public',
    'grant connect on database postgres to reporter with grant option'
  ])
    await sql(text, 'shop')
  const asked = async (): Promise<string> =>
    (
      await sql(`
        select datname, (select array_agg(a::text order by a::text) from unnest(datacl) as a), datconnlimit, shobj_description(oid, 'pg_database') from pg_database
        where datname in ('postgres', 'template1') order by datname`)
    ).concat(
      await sql(`
        select d.datname, s.setrole::regrole, s.setconfig from pg_db_role_setting s
        join pg_database d on d.oid = s.setdatabase order by 1, 2`)
    )
  const before = await asked()
  t.match(before, /7s/)

  await ann.post(`${made.path}/upgrade`, { target_version: '15' })
  const refused = await untilUpgraded(ann, made)
  t.match(
    refused,
    { phase: 'failed', error: /take no connections, so that nobody can dump them: closed\./ },
    refused.log
  )
  await untilRunning(ann, made.path)
  await sql('alter database closed allow_connections true', 'shop')
  await ann.post(`${made.path}/upgrade`, { target_version: '15' })
  await untilRunning(ann, made.path)
  const [upgrade] = (await ann.get(`${made.path}/upgrades`)).body
  t.match(upgrade, { phase: 'succeeded' }, upgrade.log)
  t.match(await sql('show server_version'), /^15/)
  t.equal(await asked(), before)
  t.equal(await sql("select count(*) from pg_database where datname = 'closed'"), '1')
})
