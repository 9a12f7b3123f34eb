import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { type EngineCommand, type EngineDatabase, restoredMark } from '../api.js'
import { connectionUrl } from '../engines/connection-url.js'
import { databaseNameOf } from '../engines/credential-rules.js'
import { engine as mongo } from '../engines/mongo.js'
import { engine as postgres } from '../engines/postgres.js'
import { majorOf, olderMajor } from '../engines/version.js'
import { databaseSlug } from '../records/slug.js'
import { decidePorts } from '../servers/external-reach.js'
import { statusAfter, statusOf } from '../status/container-status.js'
import { checkRoom } from '../upgrades/upgrade-room.js'
import { assertSame } from '../upgrades/upgrade-runner.js'

const mebi = 2 ** 20
const password = 'a "quoted" p@ss: #'
const database: EngineDatabase = {
  version: '7',
  credentials: { username: 'admin', password },
  port: 27_017,
  dataDir: null
}

void test('the status of a database follows its container', async t => {
  const after = (action: 'start' | 'stop' | 'die' | 'destroy', exitCode: number | null, isAsked = false) =>
    statusAfter('running', { action, exitCode }, isAsked).status
  t.equal(after('die', 0), 'stopped')
  t.equal(after('die', 1), 'failed')
  t.equal(after('die', 137), 'failed')
  t.equal(after('die', 137, true), 'stopped', 'a stop that was asked for and took too long')
  t.equal(after('stop', null), 'stopped')
  t.equal(after('destroy', null), 'failed')
  t.equal(statusAfter('failed', { action: 'stop', exitCode: null }, false).status, 'failed')
  t.equal(statusAfter('stopped', { action: 'die', exitCode: 1 }, false).status, 'stopped')
  t.equal(statusAfter('stopped', { action: 'destroy', exitCode: null }, false).status, 'stopped')
  t.equal(statusAfter('failed', { action: 'start', exitCode: null }, false).status, 'running')
  t.equal(statusOf('running', undefined).status, 'failed')
  t.equal(statusOf('running', { status: 'exited', exitCode: 0, oomKilled: false }).status, 'stopped')
  t.match(statusOf('running', { status: 'exited', exitCode: 137, oomKilled: true }), {
    status: 'failed',
    reason: /memory/
  })
  const afterShortage = (exitCode: number) =>
    statusOf('running', { status: 'exited', exitCode, oomKilled: true })
  t.equal(afterShortage(0).status, 'stopped', 'it took one process of the server, which was stopped later')
  t.match(afterShortage(1), { status: 'failed', reason: /exit code 1/ }, 'or ended later for another reason')
  t.equal(statusOf('failed', { status: 'running', exitCode: 0, oomKilled: false }).status, 'running')
})

void test('external access is opened where the machine, and nobody else, has the port', async t => {
  const machine = { bind: '127.0.0.1', address: '127.0.0.1', range: undefined, published: null }
  t.same(decidePorts(machine), { ports: null }, 'any that is free')
  t.same(decidePorts({ ...machine, range: { first: 7, last: 8 } }), { ports: [7, 8] })
  for (const address of ['0.0.0.0', '192.0.2.1', '127.0.0.2'])
    t.match(decidePorts({ ...machine, bind: address, address }), { reason: address }, address)

  const at = (containerPort: number, host: string, hostPort = containerPort, protocol = 'tcp') => ({
    host,
    hostPort,
    containerPort,
    protocol
  })
  const inside = { bind: 'name', address: '172.18.0.2', range: { first: 7, last: 9 } }
  const of = (...published: ReturnType<typeof at>[]) => decidePorts({ ...inside, published })
  t.same(of(at(6, '127.0.0.1'), at(7, '127.0.0.1'), at(9, '127.0.0.1')), { ports: [7, 9] })
  t.same(of(at(7, '127.0.0.1'), at(7, '::1'), at(8, '')), { ports: [7] })
  t.match(of(), { reason: /no port .* is published/ })
  t.match(of(at(7, '127.0.0.1', 17)), { reason: /no port .* is published/ }, 'under another number')
  t.match(of(at(7, '127.0.0.1', 7, 'udp')), { reason: /no port .* is published/ })
  t.match(of(at(7, '127.0.0.2')), { reason: /no port .* is published/ }, 'at another address')
  t.match(of(at(7, '127.0.0.1'), at(7, '192.0.2.1')), { reason: /port 7 .* the network reaches/ })
  t.match(of(at(8, '')), { reason: /port 8 .* the network reaches/ })

  const published = [at(7, '127.0.0.1')]
  t.match(decidePorts({ ...machine, published }), {
    reason: /in a container/,
    remedy: /BUSBAR_DATABASE_BIND/
  })
  t.match(decidePorts({ ...inside, range: undefined, published }), { remedy: /BUSBAR_DATABASE_PORTS/ })
  t.match(decidePorts({ ...inside, bind: '0', address: '0.0.0.0', published }), { reason: /every project/ })
})

void test('an upgrade leads to no lower major version', async t => {
  t.equal(majorOf('16.3-alpine'), 16)
  t.equal(majorOf('latest'), null)
  t.match(olderMajor('16', '15.9'), /older/)
  t.equal(olderMajor('16.3', '16.1'), null)
  t.equal(olderMajor('14', '15'), null)
  t.equal(olderMajor('latest', '15'), null)
})

void test('PostgreSQL keeps its data where its version does', async t => {
  const path = (version: string) => postgres.dataPath({ version, dataDir: null })
  t.equal(path('17.2'), '/var/lib/postgresql/data')
  t.equal(path('18'), '/var/lib/postgresql')
  t.equal(path('latest'), '/var/lib/postgresql')
})

void test('a connection URL holds whatever user, password and name are', async t => {
  const url = new URL(
    connectionUrl('postgresql', { user: "a'b", password: '@:/?#[]%', host: 'h', port: 1, database: 'x y/z' })
  )
  t.equal(url.host, 'h:1')
  t.equal(decodeURIComponent(url.username), "a'b")
  t.equal(decodeURIComponent(url.password), '@:/?#[]%')
  t.equal(decodeURIComponent(url.pathname), '/x y/z')
  t.equal(connectionUrl('redis', { password: 'p', host: 'h', port: 6379 }), 'redis://:p@h:6379')
})

void test('a database is called as it was named, as far as servers take that', async t => {
  t.equal(databaseNameOf('Shop & more', 63), 'Shop & more')
  t.equal(databaseNameOf('"; drop', 63), 'drop')
  t.equal(databaseNameOf('"', 63), 'app')
  t.equal(databaseNameOf('a'.repeat(100), 63), 'a'.repeat(63))
})

void test('a slug has 63 characters at most, and always the end of its own', async t => {
  const id = '0123abcd-0000-0000-0000-000000000000'
  t.equal(databaseSlug('shop', 'Main DB', id), 'shop-main-db-0123abcd')
  t.equal(databaseSlug('shop', '!', id), 'shop-db-0123abcd')
  t.equal(databaseSlug('p'.repeat(80), 'x', id).length, 63)
})

void test('a copy is the same where it has as many rows in each database', async t => {
  t.doesNotThrow(() => assertSame(new Map([['a', 1]]), new Map([['a', 1]])))
  t.throws(() => assertSame(new Map([['a', 1]]), new Map([['a', 2]])), /a has 1 rows before and 2/)
  t.throws(() => assertSame(new Map([['a', 0]]), new Map()), /a has 0 rows before and no/)
  t.throws(() => assertSame(new Map(), new Map([['b', 0]])), /b has no rows/)
})

void test('an upgrade is refused where a disk that is seen has no room, or none that is known of', async t => {
  const disk = { freeBytes: 1000 * mebi, floorBytes: 128 * mebi }
  t.match(checkRoom(500 * mebi, disk), /1000 MiB are free, 856 are needed/)
  t.throws(
    () => checkRoom(700 * mebi, disk),
    /has 1000 MiB free, and a copy beside the old volume takes 1096/
  )
  t.throws(() => checkRoom(null, disk), /could not be measured/)
  t.match(checkRoom(null, undefined), /is not known from here/, 'an engine on another machine')
})

void test('MongoDB gets its password by its environment alone', async t => {
  const { dump } = mongo
  if (dump === null) throw new Error('it is dumped')
  for (const command of [
    mongo.ready(database),
    dump.dump(database, { kind: 'all' }),
    dump.restore(database, { kind: 'all' }),
    dump.count(database),
    dump.databases(database)
  ]) {
    t.notOk(command?.argv.some(word => word.includes(password)))
    t.equal(command?.env.BUSBAR_PASSWORD, password)
  }
  t.equal(JSON.parse(dump.dump(database, { kind: 'all' }).env.BUSBAR_QUOTED ?? ''), password)
  t.same(mongo.container(database, { isEmpty: false }), {
    env: { MONGO_INITDB_ROOT_USERNAME: 'admin', MONGO_INITDB_ROOT_PASSWORD: password }
  })
  t.equal(
    mongo.connectionString(database, 'shop'),
    'mongodb://admin:a%20%22quoted%22%20p%40ss%3A%20%23@shop:27017'
  )
  t.same(mongo.newCredentials({}, { name: 'x', slug: 'x', password: () => 'p' }), {
    username: 'admin',
    password: 'p'
  })
})

/** The programs of MongoDB are not to be had everywhere: these say what they are asked for. */
async function askedOf({ argv: [program = '', ...words], env }: EngineCommand): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-mongo-'))
  try {
    for (const name of ['mongodump', 'mongorestore'])
      await writeFile(join(folder, name), '#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n', { mode: 0o755 })
    const { stdout } = await promisify(execFile)(program, words, {
      env: { ...env, PATH: `${folder}:/usr/bin:/bin` }
    })
    return stdout.split('\n').filter(word => /^mongo|--(?:db|ns|drop)|busbar/.test(word))
  } finally {
    await rm(folder, { recursive: true })
  }
}

void test('of several databases of MongoDB those that are meant are restored', async t => {
  const { dump } = mongo
  if (dump === null) throw new Error('it is dumped')
  const names = ['a', 'second one']
  t.same(await askedOf(dump.dump(database, { kind: 'all' })), ['mongodump'])
  t.same(await askedOf(dump.dump(database, { kind: 'only', names: ['a'] })), ['mongodump', '--db=a'])
  t.same(await askedOf(dump.dump(database, { kind: 'only', names })), ['mongodump'])
  t.same(await askedOf(dump.dump(database, { kind: 'except', names })), ['mongodump'])
  t.same(await askedOf(dump.restore(database, { kind: 'all' })), ['mongorestore', restoredMark])
  t.same(await askedOf(dump.restore(database, { kind: 'only', names })), [
    'mongorestore',
    '--nsInclude=a.*',
    '--nsInclude=second one.*',
    restoredMark
  ])
  t.same(await askedOf(dump.restore(database, { kind: 'except', names })), [
    'mongorestore',
    '--nsExclude=a.*',
    '--nsExclude=second one.*',
    restoredMark
  ])
})
