import type { BulkConnection } from 'busbar/sdk'
import { createDatabase } from 'busbar/sdk/testing'
import { test } from 'tap'
import { openBulkConnection } from '../../../core/database/bulk-connection.js'
import type { Catalog } from '../database/catalog.js'
import { createTables, dropSchemas, fillTable, finishTables } from '../database/refill.js'
import { withSnapshot } from '../database/snapshot.js'
import { startOldPostgres } from './old-postgres-lab.js'

/** What plugins of strangers may make. Names are meant to need quotes. */
const odd = String.raw`
  create schema "x_Odd";
  create type "x_Odd".mood as enum ('fine', 'it''s', 'so so');
  create domain "x_Odd".positive as integer default 1 check (value > 0);
  create type "x_Odd".pair as (a integer, b text);
  create sequence "x_Odd".tickets as smallint increment by 5 start 10;
  create function "x_Odd".doubled(n integer) returns integer language sql immutable as 'select n * 2';
  create table "x_Odd"."left" (
    id bigint generated always as identity primary key,
    "select" text collate "C" not null default 'a''b\c',
    mood "x_Odd".mood not null default 'fine',
    n "x_Odd".positive,
    twice integer generated always as ("x_Odd".doubled(n)) stored,
    p "x_Odd".pair, tags text[], raw bytea, at timestamptz, span interval, doc jsonb, f float8,
    ticket smallint default nextval('"x_Odd".tickets'), right_id bigint,
    constraint "no %" check ("select" <> '%')
  );
  alter sequence "x_Odd".tickets owned by "x_Odd"."left".ticket;
  create table "x_Odd".right (id bigint primary key, left_id bigint references "x_Odd"."left" deferrable initially deferred, unique (left_id, id));
  alter table "x_Odd"."left" add foreign key (right_id) references "x_Odd".right;
  create index on "x_Odd"."left" (lower("select")) where n > 1;
  create table "x_Odd".part (at date not null, n integer, primary key (at, n)) partition by range (at);
  create table "x_Odd".part_old partition of "x_Odd".part for values from (minvalue) to ('2026-01-01');
  create table "x_Odd".part_new partition of "x_Odd".part default;
  create index part_n on "x_Odd".part (n);
  create table "x_Odd".base (a integer); create table "x_Odd".derived (b integer) inherits ("x_Odd".base);
  create unlogged table "x_Odd".scratch (a integer) with (fillfactor = 70);
  create function "x_Odd".of_left(l "x_Odd"."left") returns text language sql as 'select l."select"';
  create view "x_Odd".shown as select id, "x_Odd".of_left(l) as said from "x_Odd"."left" l;
  create materialized view "x_Odd".counted as select count(*) as n from "x_Odd"."left";
  create function "x_Odd".note() returns trigger language plpgsql as $f$ begin insert into "x_Odd".base values (99); return new; end $f$;
  create trigger note after insert on "x_Odd".right for each row execute function "x_Odd".note();
  alter table "x_Odd".right disable trigger note;
  create trigger kept after update on "x_Odd".right for each row execute function "x_Odd".note();
  comment on column "x_Odd".base.a is 'it''s a';
  create table "x_Odd".nothing ();
  insert into "x_Odd"."left" ("select", n, p, tags, raw, at, span, doc, f) values
    (E'line\nbreak\ttab \\ back', 5, (1, 'x,"y"'), '{a,"b c",null}', '\x00ff', '2026-11-28 02:03:04.567891+05:30', '1 year 2 days 3.5 s', '{"a": [1, null]}', 0.1),
    ('ünïcode ☂ 𝒳', null, null, null, null, 'infinity', null, null, 'NaN'), ('', 1, null, '{}', '', null, '0', 'null', 1e-300);
  insert into "x_Odd".right values (1, 1), (2, 3); update "x_Odd"."left" set right_id = 2 where id = 1;
  insert into "x_Odd".part values ('2025-05-05', 1), ('2026-06-06', 2); insert into "x_Odd".base values (1); insert into "x_Odd".derived values (2, 3);
  insert into "x_Odd".scratch values (7);
  refresh materialized view "x_Odd".counted`

const schemas = ['x_Odd']

/** Everything in the schema that can be told in words, so that two databases can be compared. */
async function told(connection: BulkConnection): Promise<object> {
  const ask = async (text: string): Promise<object[]> => await connection.query(text)
  return {
    left: await ask('select l::text as row from "x_Odd"."left" l order by id'),
    right: await ask('select r::text as row from "x_Odd".right r order by id'),
    part: await ask('select tableoid::regclass::text as t, p::text as row from "x_Odd".part p order by 2'),
    base: await ask('select tableoid::regclass::text as t, b::text as row from "x_Odd".base b order by 2'),
    scratch: await ask('select * from "x_Odd".scratch'),
    shown: await ask('select * from "x_Odd".shown order by id'),
    counted: await ask('select * from "x_Odd".counted'),
    constraints: await ask(
      `select conrelid::regclass::text as t, conname, pg_get_constraintdef(oid) as def, condeferred from pg_constraint
      where connamespace = '"x_Odd"'::regnamespace and contype <> 'n' order by 1, 2`
    ),
    indexes: await ask(`select indexdef from pg_indexes where schemaname = 'x_Odd' order by 1`),
    triggers: await ask(
      `select tgname, tgenabled, pg_get_triggerdef(oid) as def from pg_trigger where not tgisinternal and tgrelid::regclass::text like '"x_Odd"%' order by 1`
    ),
    columns: await ask(
      `select table_name, column_name, data_type, is_nullable, column_default, is_identity, identity_generation, is_generated, collation_name
      from information_schema.columns where table_schema = 'x_Odd' order by 1, ordinal_position`
    ),
    options: await ask(
      `select relname, relpersistence, reloptions from pg_class where relnamespace = '"x_Odd"'::regnamespace and relkind = 'r' order by 1`
    ),
    comment: await ask(`select col_description('"x_Odd".base'::regclass, 1) as comment`)
  }
}

/** Copies the schema from one database to another, through memory. */
async function copy(from: BulkConnection, to: BulkConnection, major: number): Promise<Catalog> {
  const rows = new Map<string, Buffer[]>()
  const catalog = await withSnapshot({ connection: from, schemas: async () => schemas }, async snapshot => {
    for (const table of snapshot.catalog.tables) {
      const bytes = snapshot.rows(table)
      if (bytes === null) continue
      const chunks: Buffer[] = []
      for await (const chunk of bytes) chunks.push(chunk as Buffer)
      rows.set(table.name, chunks)
    }
    return snapshot.catalog
  })
  await to.query('begin')
  await createTables(to, catalog, major)
  for (const table of catalog.tables) {
    const chunks = rows.get(table.name)
    if (chunks === undefined) continue
    await fillTable(
      to,
      table,
      (async function* () {
        yield* chunks
      })()
    )
  }
  await finishTables(to, catalog)
  await to.query('commit')
  return catalog
}

test('whatever a schema consists of is there again in another database', async t => {
  const [one, two] = [await createDatabase(), await createDatabase()]
  const [from, to] = [await openBulkConnection(one.url), await openBulkConnection(two.url)]
  t.teardown(async () => {
    await Promise.all([from.close(), to.close()])
    await Promise.all([one.drop(), two.drop()])
  })
  await from.query(odd)
  await copy(from, to, 18)
  t.same(await told(to), await told(from))
  for (const connection of [from, to])
    await connection.query(`insert into "x_Odd"."left" ("select") values ('next')`)
  t.same(
    await to.query('select id, ticket from "x_Odd"."left" order by id desc limit 1'),
    await from.query('select id, ticket from "x_Odd"."left" order by id desc limit 1'),
    'sequences go on where they were'
  )
  await to.query('begin')
  await dropSchemas(to, schemas)
  await to.query('rollback')
  t.equal((await to.query('select from "x_Odd"."left"')).length, 4, 'what is not committed is not taken down')
})

test('it is there again on an older major too, without the rights of a superuser', async t => {
  const old = await startOldPostgres(t)
  if (old === undefined) return
  const fresh = await createDatabase()
  const from = await openBulkConnection(fresh.url)
  const to = await openBulkConnection(await old.createDatabase('copied'))
  t.teardown(async () => {
    await Promise.all([from.close(), to.close()])
    await fresh.drop()
  })
  await from.query(odd)
  await from.query(
    'create table "x_Odd".virtual (a integer, b integer generated always as (a + 1) virtual); insert into "x_Odd".virtual values (1)'
  )
  await copy(from, to, old.major)
  t.same(await told(to), await told(from))
  t.same(await to.query('select * from "x_Odd".virtual'), [{ a: 1, b: 2 }])
  // And back up again.
  const other = await createDatabase()
  const back = await openBulkConnection(other.url)
  t.teardown(async () => {
    await back.close()
    await other.drop()
  })
  await copy(to, back, 18)
  t.same(await told(back), await told(from))
})

test('all tables are as they were at one moment, whatever is written meanwhile', async t => {
  const database = await createDatabase()
  const [from, writer] = [await openBulkConnection(database.url), await openBulkConnection(database.url)]
  t.teardown(async () => {
    await Promise.all([from.close(), writer.close()])
    await database.drop()
  })
  await writer.query(
    'create schema "x_Odd"; create table "x_Odd".one (a integer); create table "x_Odd".two (a integer); insert into "x_Odd".one values (1); insert into "x_Odd".two values (1)'
  )
  const seen = await withSnapshot(
    { connection: from, schemas: async () => schemas },
    async ({ catalog, rows }) => {
      const copied: string[] = []
      for (const table of catalog.tables) {
        const chunks: Buffer[] = []
        for await (const chunk of rows(table) ?? []) chunks.push(chunk as Buffer)
        copied.push(`${table.name}: ${Buffer.concat(chunks).toString().trim()}`)
        // In one transaction: an archive has both or none.
        await writer.query(
          'begin; update "x_Odd".one set a = a + 1; update "x_Odd".two set a = a + 1; insert into "x_Odd".two values (9); commit'
        )
      }
      return copied
    }
  )
  t.same(seen, ['one: 1', 'two: 1'])
  t.same(await writer.query('select a from "x_Odd".one'), [{ a: 3 }])
})
