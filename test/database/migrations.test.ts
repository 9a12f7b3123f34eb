import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Migration } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { checksumOf, type MigrationPlan, migrate, pendingMigrations } from '../../core/database/migrations.js'
import type { Postgres } from '../../core/database/postgres.js'
import { another, freshPostgres, log } from './database-kit.js'

const expand = (name: string, sql: string): Migration => ({ name, phase: 'expand', sql })
const contract = (name: string, sql: string): Migration => ({ name, phase: 'contract', sql })
const plan = (plugin: string, ...migrations: Migration[]): MigrationPlan => ({
  plugin,
  schema: plugin,
  migrations
})
const options = { version: '1.0.0', log }

test('migrations run once, in the order of the plans and of their names, in the schema of their plugin', async t => {
  const postgres = await freshPostgres(t)
  const plans = [
    plan('parents', expand('001-create', 'create table $schema.parent (id int primary key)')),
    plan(
      'children',
      expand('002-fill', 'insert into $schema.child values (1); insert into $schema.child values (2)'),
      expand('001-create', 'create table $schema.child (id int, parent_id int references parents.parent)')
    )
  ]
  for (let n = 0; n < 2; n++) t.equal((await migrate(postgres, plans, options)).failed.size, 0)
  t.same(await postgres.query('select id from children.child order by 1'), [{ id: 1 }, { id: 2 }])
  t.same(await postgres.query('select plugin, name, phase, release from kernel.migration order by 1, 2'), [
    { plugin: 'children', name: '001-create', phase: 'expand', release: '1.0.0' },
    { plugin: 'children', name: '002-fill', phase: 'expand', release: '1.0.0' },
    { plugin: 'parents', name: '001-create', phase: 'expand', release: '1.0.0' }
  ])
})

test('the migrations of a third-party plugin have one limit together, however many statements they are made of', async t => {
  const postgres = await freshPostgres(t)
  const slow = expand('001-slow', 'select pg_sleep(0.8);'.repeat(20))
  const begunAt = performance.now()
  const { failed } = await migrate(
    postgres,
    [{ ...plan('slow', slow), isThirdParty: true }, plan('next', expand('001-next', 'select pg_sleep(0.3)'))],
    { ...options, thirdPartyLimitMs: 1_000 }
  )
  t.match(failed.get('slow')?.message, /001-slow/)
  t.equal(failed.size, 1, 'the next one is not cancelled')
  t.ok(performance.now() - begunAt < 12_000)
})

/** SQL that waits for a program which no signal to PostgreSQL ends, how many connections do so, and the program's end. */
async function endless(t: Test, postgres: Postgres) {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-endless-'))
  // The server runs as another user.
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await postgres.session.connected()
  const waiting = async (): Promise<number> =>
    (
      await postgres.query(
        `select from pg_stat_activity where query ~ 'copy endless' and pid <> pg_backend_pid() and datname = current_database()`
      )
    ).length
  const program = `trap "" INT TERM; for i in $(seq 300); do ! test -e ${folder}/end && test -e ${folder} || break; sleep 0.1; done`
  return {
    sql: `create temporary table endless (line text); copy endless from program $program$ ${program} $program$`,
    waiting,
    end: async () => {
      await writeFile(join(folder, 'end'), '')
      await until(async () => (await waiting()) === 0, 'it has ended')
    }
  }
}

test('a migration that PostgreSQL does not end is left at the limit of its plugin', async t => {
  const postgres = await freshPostgres(t)
  const { sql, waiting, end } = await endless(t, postgres)
  const { failed } = await migrate(
    postgres,
    [{ ...plan('endless', expand('001-endless', sql)), isThirdParty: true }],
    { ...options, thirdPartyLimitMs: 1_000 }
  )
  t.match(failed.get('endless')?.message, /001-endless of endless failed: it took longer than the 1 s/)
  t.equal(await waiting(), 1, 'PostgreSQL is at it still')
  await end()
})

test('a migration that PostgreSQL does not end is left when the platform stops', async t => {
  const postgres = await freshPostgres(t)
  const { sql, waiting, end } = await endless(t, postgres)
  const stopped = new AbortController()
  const migrated = migrate(postgres, [plan('endless', expand('001-endless', sql))], {
    ...options,
    signal: stopped.signal
  })
  await until(async () => (await waiting()) === 1, 'it waits')
  stopped.abort()
  await t.rejects(migrated, { code: 'E_STOPPING' })
  t.equal(await waiting(), 1, 'PostgreSQL is at it still')
  await end()
})

test('a start with nothing to do takes one lock and reads once', async t => {
  const postgres = await freshPostgres(t)
  const plans = Array.from({ length: 34 }, (_, n) =>
    plan(`plugin_${n}`, expand('001-create', 'create table $schema.thing (id int)'))
  )
  await migrate(postgres, plans, options)
  const statements: unknown[] = []
  postgres.pool.once('acquire', client => {
    const query: (...args: unknown[]) => unknown = client.query.bind(client)
    Object.assign(client, {
      query: (...args: unknown[]) => {
        statements.push(args[0])
        return query(...args)
      }
    })
  })
  await migrate(postgres, plans, options)
  t.equal(statements.length, 3, 'lock, read, unlock')
})

test('several processes that start at once migrate once', async t => {
  const postgres = await freshPostgres(t)
  const others = await Promise.all([another(t, postgres), another(t, postgres), another(t, postgres)])
  const plans = [
    plan(
      'once',
      expand('001-create', 'create table $schema.thing (id int)'),
      expand('002-fill', 'insert into $schema.thing values (1)')
    )
  ]
  const results = await Promise.all(
    [postgres, ...others].map(async one => await migrate(one, plans, options))
  )
  for (const { failed } of results) t.equal(failed.size, 0)
  t.same(await postgres.query('select count(*) from once.thing'), [{ count: 1 }])
})

test('a migration that fails leaves nothing of itself, names its place, and does not stop the other plugins', async t => {
  const postgres = await freshPostgres(t)
  const { failed } = await migrate(
    postgres,
    [
      plan(
        'broken',
        expand('001-good', 'create table $schema.good (id int)'),
        expand('002-bad', 'create table $schema.half (id int);\n  insert into $schema.nowhere values (1)'),
        expand('003-later', 'create table $schema.later (id int)')
      ),
      plan('fine', expand('001-create', 'create table $schema.thing (id int)'))
    ],
    options
  )
  t.same([...failed.keys()], ['broken'])
  t.equal(
    failed.get('broken')?.message,
    'migration 002-bad of broken failed in line 2, column 15: relation "broken.nowhere" does not exist'
  )
  t.same(
    await postgres.query(
      "select schemaname || '.' || tablename as name from pg_tables where schemaname in ('broken', 'fine') order by 1"
    ),
    [{ name: 'broken.good' }, { name: 'fine.thing' }]
  )

  t.comment('the corrected text runs at the next start')
  const { failed: none } = await migrate(
    postgres,
    [plan('broken', expand('001-good', 'create table $schema.good (id int)'), expand('002-bad', 'select 1'))],
    options
  )
  t.equal(none.size, 0)
})

test('a migration that was edited after it had run fails its plugin alone', async t => {
  const postgres = await freshPostgres(t)
  await migrate(
    postgres,
    [plan('edited', expand('001-create', 'create table $schema.thing (id int)'))],
    options
  )
  const { failed } = await migrate(
    postgres,
    [
      plan(
        'edited',
        expand('001-create', 'create table $schema.thing (id bigint)'),
        expand('002-more', 'create table $schema.more (id int)')
      ),
      plan('fine', expand('001-create', 'create table $schema.thing (id int)'))
    ],
    options
  )
  t.match(
    failed.get('edited')?.message,
    'migration 001-create of edited was changed after it had run: restore its text and add a new migration instead'
  )
  t.same(
    await postgres.query(
      "select to_regclass('edited.more')::text as more, to_regclass('fine.thing')::text as thing"
    ),
    [{ more: null, thing: 'fine.thing' }]
  )
})

test('a database that is ahead stops the start and names both releases', async t => {
  const postgres = await freshPostgres(t)
  const first = expand('001-create', 'create table $schema.thing (id int)')
  await migrate(
    postgres,
    [plan('ahead', first, expand('002-new', 'alter table $schema.thing add column name text'))],
    { ...options, version: '2.1.0' }
  )
  await t.rejects(
    migrate(postgres, [plan('ahead', first), plan('new', first)], { ...options, version: '2.0.3' }),
    {
      message:
        /^this is release 2\.0\.3, and the database has been migrated by release 2\.1\.0 \(ahead: 002-new\): start release 2\.1\.0 or later/
    }
  )
  t.same(
    await postgres.query("select to_regclass('new.thing') as thing"),
    [{ thing: null }],
    'nothing else was migrated'
  )
  t.equal(
    (await migrate(postgres, [plan('other', first)], { ...options, version: '2.0.3' })).failed.size,
    0,
    'a plugin that is not installed any more does not matter'
  )
})

test('what removes something waits until it is allowed, except in a schema that nobody has used', async t => {
  const create = expand('001-create', 'x')
  const drop = contract('002-drop', 'y')
  const later = expand('003-later', 'z')
  const applied = [
    { plugin: 'p', name: '001-create', checksum: checksumOf(create), phase: 'expand' as const, release: '1' }
  ]
  const names = (contractAllowed: boolean, done: typeof applied) =>
    pendingMigrations(plan('p', later, drop, create), done, contractAllowed).map(({ name }) => name)
  t.same(names(false, applied), ['003-later'])
  t.same(names(true, applied), ['002-drop', '003-later'])
  t.same(names(false, []), ['001-create', '002-drop', '003-later'])
})

test('a third-party plugin cannot make a trigger or a rule fire in statements of others', async t => {
  const postgres = await freshPostgres(t)
  await postgres.query(`
    create schema shop; create table shop.thing (id int primary key);
    create function public.fired () returns trigger language plpgsql as 'begin return old; end';
    create schema x_other; create table x_other.own (id int); create trigger own before delete on x_other.own for each row execute function public.fired()`)
  const watch = (table: string, on: string) =>
    `create trigger watch before ${on} on ${table} for each row execute function public.fired();`
  const own = (key: string) =>
    `create table $schema.own (id int primary key, thing_id int references shop.thing (id) ${key});`
  const inner = (key: string) => `create table $schema.part (own_id int references $schema.own (id) ${key});`
  const refused = {
    a: watch('shop.thing', 'insert'),
    b: 'create rule watch as on delete to shop.thing do also select 1',
    c: own('on delete cascade') + watch('$schema.own', 'delete'),
    d: own('on delete set null') + watch('$schema.own', 'insert or update'),
    e: own('on update cascade') + watch('$schema.own', 'update'),
    f: own('on delete cascade') + inner('on delete cascade') + watch('$schema.part', 'delete'),
    m: `${own('on delete cascade')} create rule watch as on delete to $schema.own do also select 1`,
    n: `create function $schema.steady (n int) returns int language sql immutable as 'select n';
      ${own('on delete set null')} alter table $schema.own add check ($schema.steady(thing_id) > 0)`,
    o: `create function $schema.steady (n int) returns int language sql immutable as 'select n';
      ${own('on delete set null')} create index on $schema.own ($schema.steady(thing_id))`,
    p: `create function $schema.steady (n int) returns int language sql immutable as 'select n';
      ${own('on update cascade')} alter table $schema.own add double int generated always as ($schema.steady(thing_id)) stored`,
    g: `do $$ begin create trigger watch before delete on shop.thing for each row execute function public.fired(); exception when division_by_zero then end $$`
  }
  const accepted = {
    h: own('on delete restrict') + watch('$schema.own', 'insert or update or delete'),
    i: own('on delete cascade') + watch('$schema.own', 'insert or update'),
    j: own('on delete restrict') + inner('on delete cascade') + watch('$schema.part', 'delete'),
    q: `create function $schema.steady (n int) returns int language sql immutable as 'select n';
      ${own('on delete cascade')} alter table $schema.own add check ($schema.steady(thing_id) > 0)`,
    r: `${own('on delete set null')} alter table $schema.own add check (thing_id > 0)`,
    k: `${own('on delete cascade')} create view $schema.seen as select id from $schema.own`
  }
  const { failed } = await migrate(
    postgres,
    Object.entries({ ...refused, ...accepted }).map(([id, sql]) => ({
      ...plan(id, expand('001-create', sql)),
      schema: `x_${id}`,
      isThirdParty: true
    })),
    options
  )
  t.same([...failed.keys()], Object.keys(refused))
  t.match(
    failed.get('a')?.message,
    /^migration 001-create of a failed: it makes the trigger watch on shop\.thing, a table of others/
  )
  t.match(failed.get('b')?.message, /the rule watch on shop\.thing/)
  t.match(failed.get('f')?.message, /the trigger watch on x_f\.part would run in statements of others/)
  t.same(
    await postgres.query(
      "select from pg_trigger where tgrelid = 'shop.thing'::regclass and not tgisinternal"
    ),
    []
  )
  // What is kept of itself in the platform's own schemas is not asked about.
  const builtIn = await migrate(postgres, [plan('l', expand('001-create', refused.c))], options)
  t.equal(builtIn.failed.size, 0)
})
