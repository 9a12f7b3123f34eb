import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { installCodeGuard } from '../../core/database/code-guard.js'
import { migrate } from '../../core/database/migrations.js'
import { openPostgres } from '../../core/database/postgres.js'
import { disableReachingCode } from '../../core/database/reaching-code.js'
import { freshPostgres, log } from './database-kit.js'

const tables = `
  create schema kernel; create schema shop; create table shop.thing (id int primary key);
  create schema x_bad; create table x_bad.own (id int primary key, thing_id int references shop.thing (id) on delete cascade);
  create table x_bad.kept (id int primary key, thing_id int references shop.thing (id) on delete restrict);
  create function x_bad.fired () returns trigger language plpgsql as $$ begin
    perform set_config('default_transaction_read_only', 'on', false); return old; end $$;
  create function x_bad.run (command text) returns int language plpgsql as $$ begin execute command; return 1; end $$`

const watch = (table: string) =>
  `create trigger watch after delete on ${table} for each row execute function x_bad.fired()`

async function guarded(t: Parameters<typeof freshPostgres>[0]) {
  const postgres = await freshPostgres(t)
  await postgres.query(tables)
  await installCodeGuard(postgres, log)
  return {
    postgres,
    kernel: postgres.onTablesOf('bad', 'x_bad'),
    bad: postgres.for({ plugin: 'bad', kind: 'third-party', schema: 'x_bad' })
  }
}

test('a plugin cannot make code at run time that runs in statements of others, in whatever way it makes it', async t => {
  const { postgres, kernel, bad } = await guarded(t)
  const ways = {
    'a trigger on its table': watch('x_bad.own'),
    'a trigger on a table of others': watch('shop.thing'),
    'a rule on a table of others': 'create rule watch as on delete to shop.thing do also select 1',
    'several commands': `create table x_bad.more (thing_id int references shop.thing (id) on delete cascade); ${watch('x_bad.more')}`,
    'a key where a trigger is': `${watch('x_bad.kept')}; alter table x_bad.kept add foreign key (id) references shop.thing (id) on delete cascade`,
    'a block': `do $$ begin ${watch('x_bad.own')}; end $$`,
    'a block that goes on after an error': `do $$ begin ${watch('shop.thing')}; exception when division_by_zero then null; end $$`,
    'a function': `select x_bad.run('${watch('x_bad.own')}')`
  }
  const made = async () =>
    await postgres.query(
      "select tgname as name from pg_trigger where not tgisinternal union all select rulename from pg_rewrite where rulename = 'watch'"
    )
  for (const [what, text] of Object.entries(ways)) {
    await t.rejects(bad.query(text), { message: /watch on (x_bad|shop)\.\w+.*leave that out/ }, what)
    await t.rejects(
      bad.transaction(async tx => {
        await bad.query(text, [], tx)
      }),
      { message: /leave that out/ },
      `${what}, in a transaction`
    )
    await t.rejects(
      kernel.transaction(async tx => {
        await bad.query(text, [], tx)
      }),
      { message: /leave that out/ },
      `${what}, in a transaction of the kernel on its tables`
    )
    t.same(await made(), [], what)
  }
  t.same(await postgres.query("select to_regclass('x_bad.more') as more"), [{ more: null }])
})

test('the guard lets a plugin do all else, and others everything', async t => {
  const { postgres, bad } = await guarded(t)
  await bad.query(watch('x_bad.kept'))
  await bad.query('create table x_bad.more (thing_id int references shop.thing (id) on delete cascade)')
  await bad.query('create temp table mine (id int)')
  await postgres.query(watch('x_bad.own'))
  await bad.query('drop trigger watch on x_bad.own')
  await postgres.query('create role guest; drop role guest')
  await postgres.query(watch('shop.thing'))
  const other = postgres.for({ plugin: 'other', kind: 'third-party', schema: 'x_other' })
  await other.query('create schema x_other; create table x_other.thing (id int)')
})

test('the guard is made once, and again when it was changed', async t => {
  const { postgres, bad } = await guarded(t)
  const oid = async () =>
    await postgres.query("select oid from pg_event_trigger where evtname = 'busbar_code_guard'")
  const first = await oid()
  await installCodeGuard(postgres, log)
  t.same(await oid(), first)
  await postgres.query("comment on function kernel.refuse_reaching_code () is 'of another release'")
  await Promise.all([installCodeGuard(postgres, log), installCodeGuard(postgres, log)])
  t.notSame(await oid(), first)
  await t.rejects(bad.query(watch('x_bad.own')), { message: /leave that out/ })
})

test('where the role may not make the guard, what a plugin has made is disabled when it is looked for, and named', async t => {
  const postgres = await freshPostgres(t)
  await postgres.query(tables)
  const role = `guest_${randomBytes(6).toString('hex')}`
  await postgres.query(`create role ${role} login password '${role}'; grant all on schema kernel to ${role}`)
  const url = `${postgres.url}${postgres.url.includes('?') ? '&' : '?'}user=${role}&password=${role}`
  const guest = await openPostgres({ url, log })
  t.equal(await installCodeGuard(guest, log), false)
  await guest.close()
  await postgres.query(`drop owned by ${role}; drop role ${role}`)

  await disableReachingCode(postgres, 'x_bad')
  await postgres.query(`${watch('x_bad.own')}; create rule watch as on delete to x_bad.own do also select 1`)
  await t.rejects(disableReachingCode(postgres, 'x_bad'), {
    message: /^the rule watch on x_bad\.own would run in statements of others/
  })
  await postgres.query(watch('shop.thing'))
  await t.rejects(disableReachingCode(postgres, 'x_bad'), {
    message: /the trigger watch on shop\.thing, a table of others/
  })
  t.same(
    await postgres.query(
      "select tgenabled as enabled from pg_trigger where not tgisinternal union all select ev_enabled from pg_rewrite where rulename = 'watch'"
    ),
    [{ enabled: 'D' }, { enabled: 'D' }, { enabled: 'D' }]
  )
  await disableReachingCode(postgres, 'x_bad')
  await disableReachingCode(postgres, 'x_nowhere')
})

const reaching = {
  check: 'alter table shop.thing add constraint c check (x_bad.f(id) > 0)',
  default: 'alter table shop.thing alter column id set default x_bad.f(1)',
  'generated column': 'alter table shop.thing add column g int generated always as (x_bad.f(id)) stored',
  index: 'create index i on shop.thing (x_bad.f(id))',
  policy: 'create policy p on shop.thing using (x_bad.f(id) > 0)',
  child: 'create table x_bad.child () inherits (shop.thing)',
  partition: 'create table x_bad.part partition of shop.parted for values in (1)',
  parent: 'create table x_bad.above (id int not null); alter table shop.thing inherit x_bad.above',
  'event trigger':
    'create event trigger e on ddl_command_start execute function x_bad.e(); create table x_bad.next (id int)'
}
const functions = `
  create function x_bad.f (n int) returns int language plpgsql immutable as $$ begin return n; end $$;
  create function x_bad.e () returns event_trigger language plpgsql as $$ begin end $$;
  create table shop.parted (id int) partition by list (id)`

test('no function and no table of a plugin gets into statements of others by other ways', async t => {
  const { postgres, bad } = await guarded(t)
  await postgres.query(functions)
  const message = /would bring code or tables of the plugin into statements of others: leave that out/
  for (const [what, text] of Object.entries(reaching)) {
    await t.rejects(bad.query(text), { message }, what)
    await t.rejects(
      bad.transaction(async tx => {
        await bad.query("set local session_replication_role = 'replica'", [], tx)
        await bad.query(text, [], tx)
      }),
      { message },
      `${what}, as a replica`
    )
    const plan = { plugin: 'bad', schema: 'x_bad', isThirdParty: true }
    const migrations = [{ name: '001-reach', phase: 'expand' as const, sql: text }]
    const { failed } = await migrate(postgres, [{ ...plan, migrations }], { version: '1.0.0', log })
    t.match(failed.get('bad'), { message }, `${what}, in a migration`)

    await disableReachingCode(postgres, 'x_bad')
    await postgres.query(text)
    await t.rejects(disableReachingCode(postgres, 'x_bad'), { message }, `${what}, when it is there already`)
    await disableReachingCode(postgres, 'x_bad')
  }
  await bad.query(
    'create table x_bad.mine (id int check (x_bad.f(id) > 0)); create index on x_bad.mine (x_bad.f(id)); create table x_bad.heir () inherits (x_bad.mine); create temp table t () inherits (x_bad.mine)'
  )
})
