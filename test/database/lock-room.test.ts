import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { migrate } from '../../core/database/migrations.js'
import { openPostgres, type PostgresOptions } from '../../core/database/postgres.js'
import { startEmbedded } from '../../embedded-postgres/index.js'
import { log } from './database-kit.js'

const noRoom = {
  status: 503,
  code: 'E_DATABASE_LOCK_ROOM',
  message: /^PostgreSQL has no room for more locks: try again; if this stays.*max_locks_per_transaction/
}
const fill = `create schema shop; create table shop.thing (id int);
  create schema x_bad; create function x_bad.fill (many int) returns void language plpgsql as $$
  begin for n in 1..many loop perform pg_advisory_lock(7, n); end loop; exception when out_of_memory then null; end $$`

/** A server of its own, as what fills its table of locks does so for all of its databases. */
async function server(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-lock-room-'))
  await chmod(directory, 0o711)
  const { url, stop } = await startEmbedded({ directory, log })
  t.teardown(async () => {
    await stop()
    await rm(directory, { recursive: true, force: true })
  })
  return url
}

test('a plugin that fills the table of locks is ended and named, and others get an answer that says what is wrong', async t => {
  const url = await server(t)
  const ended: string[][] = []
  const lines: string[] = []
  const open = async (more: Partial<PostgresOptions> = {}) => {
    const postgres = await openPostgres({ url, log, lookEveryMs: 50, ...more })
    t.teardown(async () => await postgres.close())
    return postgres
  }
  const postgres = await open({
    onEnded: (...args) => ended.push(args),
    log: pino({ level: 'warn' }, { write: line => void lines.push(line) })
  })
  await postgres.query(fill)
  await postgres.session.connected()
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const innocent = postgres.for({ plugin: 'innocent', kind: 'third-party' })
  const takeLock = { plugin: 'mig', schema: 'x_mig', isThirdParty: true }
  const ways = {
    'a statement': async () => await postgres.query('lock table shop.thing in access exclusive mode'),
    'a statement of another plugin': async () => await innocent.query('select pg_advisory_xact_lock(8, 8)'),
    'a migration': async () => {
      const { failed } = await migrate(
        postgres,
        [
          {
            ...takeLock,
            migrations: [{ name: '001-a', phase: 'expand', sql: 'create table $schema.a (id int)' }]
          }
        ],
        { version: '1.0.0', log }
      )
      throw failed.get('mig') ?? new Error('it has run')
    }
  }
  await innocent.query('select 1')
  for (const [what, run] of Object.entries(ways)) {
    ended.length = 0
    // As many as there is room for; what has become free in a while is taken again.
    await bad.query('select x_bad.fill(1000000)')
    await t.rejects(run(), what === 'a migration' ? { message: /no room for more locks/ } : noRoom, what)
    await until(() => ended.length > 0, 'the plugin to be ended')
    t.match(ended, [
      ['bad', /^its connection to the database was ended, as it had \d+ locks and PostgreSQL no room/]
    ])
    await until(async () => {
      const rows = await postgres.session.query(
        "select from pg_lock_status() where locktype = 'advisory' and classid = 7"
      )
      return rows.length === 0
    }, 'the locks to be given back')
  }
  t.ok(
    lines.some(line =>
      /has no room for more locks, of which the plugin \\"bad\\" has most: turn that plugin off/.test(line)
    )
  )

  const psql = await open()
  const outsider = psql.for({ plugin: 'elsewhere', kind: 'third-party' })
  ended.length = 0
  await outsider.query('select x_bad.fill(1000000)')
  await t.rejects(postgres.query('lock table shop.thing in access exclusive mode'), noRoom)
  await until(() => lines.some(line => line.includes('elsewhere')), 'the other to be named')
  t.same(ended, [], 'none of this process is ended for it')
})
