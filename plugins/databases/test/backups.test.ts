import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { backedUp, restored } from './backup-lab.js'
import { createDatabase, type Made, runIn, startLab, untilStatus } from './lab.js'
import { drilled, leftOf } from './postgres-lab.js'

test('a PostgreSQL database is restored as it was, with all of its databases', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, { type: 'postgres', version: '15' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const sql = async (text: string, database = 'shop') =>
    await runIn(
      k,
      made.id,
      ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-d', database, '-A', '-t', '-q', '-c', text],
      { PGPASSWORD: body.credentials.password }
    )
  await sql('create table kept as select generate_series(1, 5000) as n')
  await sql('create role reporter')
  await sql('create database stock owner reporter')
  await sql('create table also as select 7 as n', 'stock')
  const backupId = await backedUp(lab, made)
  t.equal((await ann.get(made.path)).body.status, 'running')
  t.match((await ann.get(`${made.path}/deletion-impact`)).body, { backup_count: 1 })
  await t.test('a drill restores it into a server of its own, and counts', async t => {
    t.match(await drilled(lab, made, backupId), { status: 'proven', rows: 5001 })
  })
  await sql('drop table kept; create table later (n integer)')
  await sql('drop database stock')

  const restore = await restored(lab, made, backupId)
  t.match(restore, { status: 'succeeded' }, restore.log)
  await untilStatus(ann, made.path, 'running')
  t.equal(await sql('select sum(n) from kept'), '12502500')
  t.equal(await sql('select n from also', 'stock'), '7')
  t.equal(await sql("select to_regclass('later') is null"), 't')
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })

  await t.test('also while it is stopped, and it stays stopped', async t => {
    await sql('drop table kept')
    await ann.post(`${made.path}/stop`)
    const again = await restored(lab, made, backupId)
    t.match(again, { status: 'succeeded' }, `${again.error} ${again.log}`)
    await untilStatus(ann, made.path, 'stopped')
    t.match(await ann.post(`${made.path}/start`), { status: 200 })
    await until(async () => (await sql('select sum(n) from kept').catch(() => '')) === '12502500', 'its data')
  })

  await t.test('into another database, whose own credentials stay as they are', async t => {
    const other = await createDatabase(lab, {
      name: 'copy',
      type: 'postgres',
      version: '15',
      credentials: { user: 'copier' }
    })
    const again = await restored(lab, other, backupId, { from_other: true })
    t.match(again, { status: 'succeeded' }, `${again.error} ${again.log}`)
    await untilStatus(ann, other.path, 'running')
    const { body: own } = await ann.get(`${other.path}/credentials/reveal`)
    const said = async (database: string, text: string) =>
      await runIn(
        k,
        other.id,
        ['psql', '-h', '127.0.0.1', '-U', 'copier', '-d', database, '-A', '-t', '-q', '-c', text],
        { PGPASSWORD: own.credentials.password }
      )
    t.equal(await said('shop', 'select sum(n) from kept'), '12502500')
    t.equal(await said('copy', 'select 1'), '1')
  })

  await t.test('a database that is stopped is not backed up', async t => {
    await ann.post(`${made.path}/stop`)
    t.match(await ann.post(`${made.path}/backups`), { status: 409 })
    await ann.post(`${made.path}/start`)
  })
})

test('a Redis database is restored as it was', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, { type: 'redis', version: '7' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const cli = async (...words: string[]) =>
    await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words], {
      REDISCLI_AUTH: body.credentials.password
    })
  await cli('set', 'kept', 'yes')
  await cli('-n', '3', 'set', 'also', 'yes')
  const backupId = await backedUp(lab, made)
  await cli('set', 'kept', 'no')
  await cli('set', 'later', '1')
  await t.test('a drill restores it into a server of its own, and counts its keys', async t => {
    t.match(await drilled(lab, made, backupId), {
      status: 'proven',
      rows: 2,
      detail: '2 databases',
      error: null
    })
    t.equal(await cli('get', 'kept'), 'no', 'beside the one that serves')
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  })
  const restore = await restored(lab, made, backupId)
  t.match(restore, { status: 'succeeded' }, restore.log)
  await untilStatus(ann, made.path, 'running')
  t.equal(await cli('get', 'kept'), 'yes')
  t.equal(await cli('exists', 'later'), '0')
  t.match(await ann.post(`${made.path}/restart`), { status: 200 })
  await until(async () => (await cli('get', 'kept').catch(() => '')) === 'yes', 'it is on the disk')
})

test('a database of any kind', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const cli = async (made: Made, ...words: string[]) =>
    await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words])

  await t.test('is restored by its files, which are packed while it stands still', async t => {
    const made = await createDatabase(lab, {
      name: 'files',
      type: 'other',
      image: 'redis:7',
      container_port: 6379
    })
    await cli(made, 'set', 'kept', 'yes')
    const backupId = await backedUp(lab, made)
    await untilStatus(ann, made.path, 'running')
    await until(async () => (await cli(made, 'ping').catch(() => '')) === 'PONG', 'it to answer again')
    await t.test('and a drill starts a server with them', async t => {
      t.match((await ann.get(`${made.path}/backups`)).body[0].proof, { status: 'unproven' })
      t.match(await drilled(lab, made, backupId), {
        status: 'proven',
        rows: 0,
        detail: /^\d+ bytes of files, with which its server starts/
      })
      t.equal(await cli(made, 'get', 'kept'), 'yes', 'beside the one that serves')
    })
    await cli(made, 'set', 'kept', 'no')
    const restore = await restored(lab, made, backupId)
    t.match(restore, { status: 'succeeded' }, restore.log)
    await until(async () => (await cli(made, 'get', 'kept').catch(() => '')) === 'yes', 'its files')
  })

  await t.test('whose server does not start with what is restored goes on with what it had', async t => {
    const made = await createDatabase(lab, {
      name: 'broken',
      type: 'other',
      image: 'postgres:15',
      container_port: 5432,
      data_dir: '/var/lib/postgresql/data',
      env: { POSTGRES_PASSWORD: 'of-this-test' },
      backup_mode: 'command',
      backup_command: 'echo x > "$BUSBAR_BACKUP_DIR/x"',
      restore_command: 'rm "$PGDATA/PG_VERSION"'
    })
    const psql = async (text: string) =>
      await runIn(k, made.id, ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-A', '-t', '-q', '-c', text], {
        PGPASSWORD: 'of-this-test'
      })
    await until(async () => (await psql('select 1').catch(() => '')) === '1', 'its server to answer')
    await psql('create table kept as select 7 as n')
    const backupId = await backedUp(lab, made)
    t.match(await drilled(lab, made, backupId), { status: 'failed', error: /its server ends/ })
    const restore = await restored(lab, made, backupId)
    t.match(restore, { status: 'failed', error: /^its server ends/ }, restore.log)
    t.match(restore.error, /is in the volume \S+, which is kept until/)
    await untilStatus(ann, made.path, 'running')
    await until(async () => (await psql('select n from kept').catch(() => '')) === '7', 'what it had')
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 2 })
  })

  await t.test('is restored by the commands that were given for it', async t => {
    const made = await createDatabase(lab, {
      name: 'commands',
      type: 'other',
      image: 'redis:7',
      container_port: 6379,
      backup_mode: 'command',
      backup_command: 'cp /data/kept "$BUSBAR_BACKUP_DIR/"',
      restore_command: 'cp "$BUSBAR_BACKUP_DIR/kept" /data/'
    })
    await runIn(k, made.id, ['sh', '-c', 'echo one > /data/kept'])
    const backupId = await backedUp(lab, made)
    await runIn(k, made.id, ['sh', '-c', 'echo two > /data/kept; echo x > /data/later'])
    await t.test('as a drill proves in a server of its own', async t => {
      t.match(await drilled(lab, made, backupId), {
        status: 'proven',
        rows: 0,
        detail: /^\d+ bytes of files, with which its server starts/,
        error: null
      })
      t.equal(await runIn(k, made.id, ['cat', '/data/kept']), 'two', 'beside the one that serves')
      t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
    })
    const restore = await restored(lab, made, backupId)
    t.match(restore, { status: 'succeeded' }, restore.log)
    await untilStatus(ann, made.path, 'running')
    t.equal(
      await runIn(k, made.id, ['sh', '-c', 'cat /data/kept; ls /data/later 2>/dev/null || true']),
      'one'
    )
  })

  await t.test('that does not start has failed, and says why', async t => {
    const made = await createDatabase(lab, {
      name: 'ends',
      type: 'other',
      image: 'busybox:lab',
      container_port: 80,
      data_dir: '/data/store',
      env: { GREETING: 'hello' }
    }).catch((error: unknown) => error)
    t.match(made, { message: /its server ends/ })
    const [shown] = (await ann.get(lab.all)).body
    t.match(shown, {
      status: 'failed',
      data_dir: '/data/store',
      container_port: 80,
      backup_mode: 'volume_snapshot'
    })
    t.match((await ann.get(`${lab.all}/${shown.id}/credentials/reveal`)).body, {
      credentials: { GREETING: 'hello' },
      connection_string: ''
    })
  })
})
