import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type MigrationPlan, migrate } from '../../core/database/migrations.js'
import { pluginDatabase } from '../../core/database/plugin-database.js'
import type { Postgres } from '../../core/database/postgres.js'
import type { Statements } from '../../core/database/statements.js'
import { freshPostgres, log } from './database-kit.js'

/** What no text of a statement shows: functions, and what calls them. */
const schema = `
  create schema x_bad;
  create function x_bad.spoil () returns int language plpgsql as $$ begin
    perform set_config('statement_timeout', '7s', false);
    perform set_config('timezone', 'Asia/Tokyo', false);
    perform set_config('default_transaction_read_only', 'on', false);
    perform set_config('search_path', 'x_bad', false);
    perform pg_advisory_lock(4242, pg_backend_pid());
    return 1; end $$;
  create function x_bad.run (command text) returns int language plpgsql as $$ begin execute command; return 1; end $$;
  create function x_bad.secured () returns int language sql security definer set lock_timeout = '9s' as 'select x_bad.spoil()';
  create function x_bad.steady (n int) returns int language plpgsql immutable as $$ begin perform x_bad.spoil(); return n; end $$;
  create function x_bad.fired () returns trigger language plpgsql as $$ begin perform x_bad.spoil(); return coalesce(new, old); end $$;
  create table x_bad.defaulted (n int default x_bad.spoil());
  create table x_bad.made (n int, m int generated always as (x_bad.steady(n)) stored);
  create table x_bad.checked (n int check (x_bad.steady(n) > 0));
  create table x_bad.watched (n int);
  create trigger watched before insert or update or delete on x_bad.watched for each row execute function x_bad.fired();`

const hidden = {
  'a function': 'select x_bad.spoil()',
  'a function in a transaction that ends': 'select x_bad.spoil() from generate_series(1, 3)',
  'a command that is put together': "select x_bad.run('se' || 't timezone = ''Asia/Tokyo''')",
  'a name that is let go': "select x_bad.run('deallo' || 'cate all')",
  'a role': "select x_bad.run('se' || 't role pg_read_all_data')",
  'a temporary table': "select x_bad.run('create te' || 'mp table mine (a int)')",
  'a channel': "select x_bad.run('lis' || 'ten other')",
  'a function with settings of its own': 'select x_bad.secured()',
  'a default': 'insert into x_bad.defaulted default values',
  'a generated column': 'insert into x_bad.made values (1)',
  'a check': 'insert into x_bad.checked values (1)',
  'a trigger': 'insert into x_bad.watched values (1)'
}

const state = `select current_setting('statement_timeout') as timeout, current_setting('timezone') as zone, current_user::text as role,
  current_setting('default_transaction_read_only') as "readOnly", current_setting('search_path') as path, pg_my_temp_schema()::int as temp,
  (select count(*) from pg_listening_channels()) as channels, (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks`

/** What all connections of one owner look like, as far as they are open. */
async function statesOf(database: Statements, connections: number): Promise<object[]> {
  const states = await Promise.all(
    Array.from(
      { length: connections },
      async () =>
        await database.transaction(async tx => {
          await database.query('select pg_sleep(0.02)', undefined, tx)
          return await database.query(state, undefined, tx)
        })
    )
  )
  return states.flat()
}

/** Expects that neither the kernel nor another plugin meets anything of what has been set. */
async function untouched(t: Test, postgres: Postgres, what: string): Promise<void> {
  const fresh = { readOnly: 'off', path: '"$user", public', temp: 0, channels: 0, locks: 0 }
  const owners = {
    'the kernel': [postgres, 6, '0'],
    'a built-in plugin': [postgres.for({ plugin: 'calm', kind: 'built-in' }), 6, '0'],
    'another plugin': [postgres.for({ plugin: 'other', kind: 'third-party' }), 3, '5min'],
    'the kernel, on tables of another plugin': [postgres.onTablesOf('other'), 2, '5min']
  } as const
  for (const [owner, [database, connections, timeout]] of Object.entries(owners)) {
    for (const found of await statesOf(database, connections)) {
      t.match(found, { ...fresh, timeout }, `${owner} after ${what}`)
      t.notMatch(found, { zone: 'Asia/Tokyo' }, `${owner} after ${what}`)
      t.notMatch(found, { role: 'pg_read_all_data' }, `${owner} after ${what}`)
    }
  }
}

test('what SQL code of a third-party plugin sets for the session reaches nobody else', async t => {
  const postgres = await freshPostgres(t, 9)
  await postgres.query(schema)
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const other = postgres.for({ plugin: 'other', kind: 'third-party' })
  const named = [postgres, other].map(one => one.statement('public.one', 'select 1 as one'))
  for (const [what, sql] of Object.entries(hidden)) {
    // Others wait for connections at the same time, and get those that become free.
    await Promise.all([
      ...Array.from({ length: 12 }, async () => await bad.query(sql).catch(() => {})),
      ...Array.from({ length: 12 }, async () => await postgres.query('select 1')),
      ...Array.from({ length: 12 }, async () => await other.query('select 1'))
    ])
    await bad
      .transaction(async tx => {
        await bad.query(sql, [], tx)
      })
      .catch(() => {})
    await untouched(t, postgres, what)
    for (const one of named) t.same(await one([]), [{ one: 1 }])
  }
})

test('a transaction of another, in which a third-party plugin has run SQL, leaves no connection behind', async t => {
  const postgres = await freshPostgres(t, 2)
  await postgres.query(schema)
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const calm = postgres.for({ plugin: 'calm', kind: 'built-in' })
  const other = postgres.for({ plugin: 'other', kind: 'third-party' })
  const table = pluginDatabase(bad, 'x_bad')
  const named = bad.statement('x_bad.spoil', 'select x_bad.spoil()')
  const ways = {
    'a statement': async tx => await bad.query('select x_bad.spoil()', [], tx),
    'a prepared statement': async tx => await named([], tx),
    knex: async tx => await table.table('watched', tx).insert({ n: 1 })
  } satisfies Record<
    string,
    (tx: Parameters<Parameters<Statements['transaction']>[0]>[0]) => Promise<unknown>
  >
  for (const owner of [postgres, calm, other])
    for (const [what, run] of Object.entries(ways)) {
      await owner.transaction(async tx => {
        await run(tx)
      })
      await untouched(t, postgres, what)
    }
})

test('a plugin begins with connections of which none is left from its former run', async t => {
  const postgres = await freshPostgres(t)
  await postgres.query(schema)
  const first = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await Promise.all(Array.from({ length: 3 }, async () => await first.query('select x_bad.spoil()')))
  const second = postgres.for({ plugin: 'bad', kind: 'third-party' })
  for (const found of await statesOf(second, 3)) t.match(found, { readOnly: 'off', locks: 0 })
})

test('many plugins that work one after another keep few connections open', async t => {
  const postgres = await freshPostgres(t)
  const open = `select count(*)::int as open from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
  for (let n = 0; n < 10; n++) {
    const plugin = postgres.for({ plugin: `p${n}`, kind: 'third-party' })
    await Promise.all(Array.from({ length: 3 }, async () => await plugin.query('select pg_sleep(0.02)')))
  }
  const isFew = async () => ((await postgres.query<{ open: number }>(open))[0]?.open ?? Infinity) <= 13
  t.ok(await until(isFew, 'idle connections are closed'))
})

test('the kernel marks and deletes rows of third-party plugins, with their triggers, on connections of their own', async t => {
  const postgres = await freshPostgres(t, 2)
  await postgres.query(
    `${schema}; alter table x_bad.watched disable trigger all; insert into x_bad.watched values (1); alter table x_bad.watched enable trigger all`
  )
  const kernel = postgres.onTablesOf('bad')
  await kernel.transaction(async tx => {
    await kernel.query('update x_bad.watched set n = n + 1', [], tx)
    await kernel.query('delete from x_bad.watched', [], tx)
  })
  await untouched(t, postgres, 'a removal')
  postgres.for({ plugin: 'calm', kind: 'built-in' })
  t.equal(postgres.onTablesOf('calm'), postgres, 'of built-in plugins on its own')
})

test('what a migration of one third-party plugin sets is gone for that of the next', async t => {
  const postgres = await freshPostgres(t)
  const plan = (plugin: string, sql: string): MigrationPlan => ({
    plugin,
    schema: `x_${plugin}`,
    isThirdParty: true,
    migrations: [{ name: '001-create', phase: 'expand', sql }]
  })
  const { failed } = await migrate(
    postgres,
    [
      plan(
        'first',
        "set default_transaction_read_only = on; set search_path = 'nowhere'; select pg_advisory_unlock_all()"
      ),
      plan('second', `create table $schema.found as ${state}`)
    ],
    { version: '1.0.0', log }
  )
  t.same([...failed], [])
  t.match(await postgres.query('select * from x_second.found'), [
    { readOnly: 'off', path: '"$user", public' }
  ])
})
