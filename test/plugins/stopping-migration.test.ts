import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, until } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'
import { writePlugin } from './third-party-kit.js'

/** What was logged from warnings on. */
const complaints = (lines: readonly string[]): unknown[] =>
  lines
    .filter(line => /"level":"(warn|error|fatal)"/.test(line))
    .map(line => (JSON.parse(line) as { msg: string }).msg)

test('a platform that stops ends a migration that waits, which is rolled back and runs at the next start', async t => {
  const home = await mkdtemp(join(tmpdir(), 'busbar-plugins-'))
  t.teardown(async () => await rm(home, { recursive: true, force: true }))
  const lines: string[] = []
  const options = { thirdParty: home, onLog: (line: string) => lines.push(line) }
  const first = await createTestKernel(options)
  const { state } = first
  const client = new pg.Client({ connectionString: state.database.url })
  client.on('error', () => {})
  await client.connect()
  t.teardown(async () => await client.end())
  await client.query('create schema locked; create table locked.thing (id int)')
  await client.query('begin; lock table locked.thing')
  const untilWaiting = async (): Promise<unknown> =>
    await until(async () => {
      const text = `select from pg_locks where not granted and relation = 'locked.thing'::regclass and database = (select oid from pg_database where datname = current_database())`
      return (await client.query(text)).rowCount === 1
    }, 'the migration waits for the lock')
  const untold = (): void => {
    t.same(complaints(lines), [])
    const told = lines.filter(line => line.includes('001-half'))
    t.equal(told.length, 1, told.join('\n'))
    t.match(JSON.parse(told[0] ?? '{}'), {
      level: 'info',
      plugin: 'late',
      msg: 'the platform stops: the migration 001-half of late was ended and rolled back, and runs again at the next start'
    })
    lines.length = 0
  }
  const tables = async (): Promise<unknown[]> => {
    const text =
      "select table_name as name from information_schema.tables where table_schema = 'x_late' order by 1"
    return (await client.query<{ name: string }>(text)).rows.map(({ name }) => name)
  }
  await writePlugin(
    home,
    'late',
    `migrations: [
      { name: '001-half', phase: 'expand', sql: 'create table $schema.half (id int); lock table locked.thing; create table $schema.whole (id int)' },
      { name: '002-next', phase: 'expand', sql: 'create table $schema.next (id int)' }
    ]`
  )

  const admin = await first.as.session()
  lines.length = 0
  const enabled = admin.post('/api/plugins/late/enable', {})
  await untilWaiting()
  // Nobody gives the lock back: it ends all the same.
  await first.stop()
  t.match(await enabled, { status: 503, body: { error: /the platform is stopping/ } })
  untold()
  t.same(await tables(), [], 'nothing of it is there')

  const second = await createTestKernel({ ...options, state, unsettled: true })
  await untilWaiting()
  lines.length = 0
  await second.stop()
  await second.kernel.settled
  untold()

  await client.query('rollback')
  const third = await createTestKernel({ ...options, state })
  t.teardown(async () => await third.close())
  t.match(await (await third.as.session()).get('/api/plugins/late'), { body: { state: 'running' } })
  t.same(await tables(), ['half', 'next', 'whole'])
})
