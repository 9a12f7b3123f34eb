import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import type { EngineCommand, EngineDatabase } from '../api.js'
import { engine as mariadb } from '../engines/mariadb.js'
import { engine as mysql } from '../engines/mysql.js'
import { engine as postgres } from '../engines/postgres.js'
import { engine as redis } from '../engines/redis.js'
import { type EngineCase, engineContract } from './engine-contract.js'
import { startLab } from './lab.js'

const psql = (database: EngineDatabase, name: string, text: string): EngineCommand => ({
  argv: [
    'psql',
    '-h',
    '127.0.0.1',
    '-U',
    database.credentials.user ?? '',
    '-d',
    name,
    '-A',
    '-t',
    '-q',
    '-c',
    text
  ],
  env: { PGPASSWORD: database.credentials.password ?? '' }
})

const postgresCase = (version: string): EngineCase => ({
  engine: postgres,
  body: { type: 'postgres', version, credentials: { user: 'shop' } },
  fill: database => [
    psql(database, 'shop', "create role reporter login password 'x1y2z3' connection limit 7"),
    psql(
      database,
      'shop',
      "create table kept (n integer primary key, t text); insert into kept values (1, E'a\\tb\\nCREATE ROLE shop;\\n\\\\.'), (2, null)"
    ),
    psql(database, 'shop', 'grant select on kept to reporter'),
    psql(database, 'shop', 'create database "second one" owner reporter'),
    psql(database, 'second one', 'create table also (n integer); insert into also values (3)')
  ],
  asks: database => [
    {
      command: psql(database, 'shop', "select string_agg(coalesce(t, 'null'), '|' order by n) from kept"),
      says: 'a\tb\nCREATE ROLE shop;\n\\.|null'
    },
    { command: psql(database, 'second one', 'select n from also'), says: '3' },
    {
      command: psql(
        database,
        'shop',
        "select rolconnlimit, has_table_privilege('reporter', 'kept', 'select') from pg_roles where rolname = 'reporter'"
      ),
      says: '7|t'
    },
    {
      command: psql(
        database,
        'shop',
        "select pg_get_userbyid(datdba) from pg_database where datname = 'second one'"
      ),
      says: 'reporter'
    }
  ],
  rows: 3
})

const sql = (database: EngineDatabase, text: string): EngineCommand => ({
  argv: ['mariadb', '--host=127.0.0.1', '--user=root', '--batch', '--skip-column-names', '-e', text],
  env: { MYSQL_PWD: database.credentials.root_password ?? '' }
})

/** The image of MariaDB stands for that of MySQL, which cannot be had everywhere: it takes the same variables. */
const mysqlCase = (type: 'mysql' | 'mariadb'): EngineCase => ({
  engine: type === 'mysql' ? mysql : mariadb,
  body: { type, version: '10.11' },
  fill: database => [
    sql(database, "create user reporter@'%' identified by 'x1y2z3'; grant select on shop.* to reporter@'%'"),
    sql(database, 'create table shop.kept (n int primary key, t text, b blob)'),
    sql(database, "insert into shop.kept values (1, 'a\\tb\\'c', x'00ff0a'), (2, null, null)"),
    sql(
      database,
      'create database `second one`; create table `second one`.also (n int); insert into `second one`.also values (3)'
    ),
    sql(database, 'create procedure shop.twice(in n int) select n * 2')
  ],
  asks: database => [
    {
      command: sql(
        database,
        "select group_concat(coalesce(hex(t), 'null'), coalesce(hex(b), 'null') order by n) from shop.kept"
      ),
      says: '6109622763' + '00FF0A,nullnull'
    },
    { command: sql(database, 'select n from `second one`.also'), says: '3' },
    { command: sql(database, 'call shop.twice(21)'), says: '42' },
    {
      command: sql(
        database,
        "select count(*) from information_schema.schema_privileges where grantee like '%reporter%' and table_schema = 'shop' and privilege_type = 'SELECT'"
      ),
      says: '1'
    },
    {
      command: {
        argv: [
          'mariadb',
          '--host=127.0.0.1',
          '--user=reporter',
          '--batch',
          '--skip-column-names',
          '-e',
          'select count(*) from shop.kept'
        ],
        env: { MYSQL_PWD: 'x1y2z3' }
      },
      says: '2'
    }
  ],
  rows: 3
})

const cli = (database: EngineDatabase, ...words: readonly string[]): EngineCommand => ({
  argv: ['redis-cli', '-h', '127.0.0.1', ...words],
  env: { REDISCLI_AUTH: database.credentials.password ?? '' }
})
const redisCase: EngineCase = {
  engine: redis,
  body: { type: 'redis', version: '7', credentials: { password: 'with "quotes" \\ and # $x' } },
  fill: database => [
    cli(database, 'set', 'one', 'a\nb'),
    cli(database, 'rpush', 'list', 'x', 'y'),
    cli(database, '-n', '3', 'hset', 'hash', 'f', 'v')
  ],
  asks: database => [
    { command: cli(database, 'get', 'one'), says: 'a\nb' },
    { command: cli(database, 'lrange', 'list', '0', '-1'), says: 'x\ny' },
    { command: cli(database, '-n', '3', 'hget', 'hash', 'f'), says: 'v' }
  ],
  rows: 3
}

const cases: Readonly<Record<string, EngineCase>> = {
  'PostgreSQL 15': postgresCase('15'),
  MySQL: mysqlCase('mysql'),
  MariaDB: mysqlCase('mariadb'),
  Redis: redisCase
}

for (const [name, one] of Object.entries(cases))
  test(name, async t => {
    if (!(await requireDatabaseImages(t))) return
    const lab = await startLab(t, {})
    if (one.body.type === 'mysql') await standIn(t)
    await engineContract(t, lab, one)
  })

/** See `mysqlCase`. */
async function standIn(t: Test): Promise<void> {
  const docker = new Docker()
  await docker.getImage('mariadb:10.11').tag({ repo: 'mysql', tag: '10.11' })
  t.teardown(async () => {
    await docker.getImage('mysql:10.11').remove({ force: true })
  })
}
