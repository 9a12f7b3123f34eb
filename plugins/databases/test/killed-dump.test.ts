import { stat } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { startS3Server } from '../../../lab/s3-server.js'
import { filesOf, storedIn } from '../../backups/test/kit.js'
import { containerOf, createDatabase, type Lab, type Made, runIn, startLab, untilRunning } from './lab.js'
import { leftOf, untilEnded } from './postgres-lab.js'

const docker = new Docker()
const longMs = 420_000
/** What a user is to read: what failed, and that the server is why, whichever of the two ended first. */
const reason =
  /^the dump failed: .*(?:its server has ended|Lost connection)|the container or the Docker Engine ended first/s

/** As `docker kill` does it: the engine does not start it again by itself. */
async function killContainer({ k }: Lab, made: Made): Promise<void> {
  await docker.getContainer(await containerOf(k, made.id)).kill()
}

test('a MariaDB whose container is killed while it is dumped serves again, and nothing half is in the bucket', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann, k } = lab
  const s3 = await startS3Server(t)
  const made = await createDatabase(lab, { type: 'mariadb', version: '10.11' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const root = async (text: string) =>
    await runIn(
      k,
      made.id,
      ['mariadb', '--host=127.0.0.1', '--user=root', '--batch', '--skip-column-names', '-e', text],
      { MYSQL_PWD: body.credentials.root_password }
    )
  // Dumped in the order of their names: more than a part of an upload, and then the one that is held.
  await root(`
    use shop; create table a_large as select random_bytes(1024) as words from seq_1_to_40000;
    create table kept (n int primary key);
    insert into kept values (1)`)
  const run = await storedIn({ admin: ann, project: lab.projectId }, s3, made.path)
  const holding = root('lock tables shop.kept write; select sleep(3600)').catch(() => {})
  const waiting = (state: string) =>
    `select count(*) from information_schema.processlist where state like '${state}%'`
  await until(async () => (await root(waiting('User sleep'))) === '1', 'the table to be locked')
  await run()
  await until(
    async () => (await root(waiting('Waiting for table metadata lock'))) === '1',
    'the dump to wait in its middle',
    longMs
  )
  await until(() => s3.requests.some(({ part }) => part === 1), 'a part of it to be uploaded', longMs)
  t.equal(s3.uploads().length, 1, 'there is a half one to be left')

  await killContainer(lab, made)
  await holding
  const backup = await untilEnded(ann, made.path, 'backups')
  t.match(backup, { status: 'failed', error: reason }, backup.log)
  t.same(s3.uploads(), [])
  t.equal(s3.objects.size, 0)
  await untilRunning(ann, made.path)
  t.equal(await root('select n from shop.kept'), '1')
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  await run()
  const next = await untilEnded(ann, made.path, 'backups', 1)
  t.match(next, { status: 'succeeded' }, next.log)
})

test('a Redis whose container is killed while it is dumped serves again, and no part of a file is left', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann, k } = lab
  const made = await createDatabase(lab, { type: 'redis', version: '7' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const env = { REDISCLI_AUTH: body.credentials.password }
  const cli = async (...words: string[]) =>
    await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words], env)
  await cli('set', 'kept', 'yes')
  for (const name of ['one', 'two'])
    await runIn(
      k,
      made.id,
      ['sh', '-c', `head -c 4000000 /dev/urandom | redis-cli -h 127.0.0.1 -x set ${name}`],
      env
    )
  // In microseconds, behind each key: what is written of it goes out, and no more comes.
  await cli('config', 'set', 'rdb-key-save-delay', '600000000')
  t.match(await ann.post(`${made.path}/backups`), { status: 202 })
  await until(
    async () => {
      const [file] = await filesOf(k)
      return file !== undefined && (await stat(file)).size > 1_000_000
    },
    'a part of it to be stored',
    longMs
  )
  t.match(await cli('info', 'persistence'), /rdb_bgsave_in_progress:1/, 'it is in the middle')

  await killContainer(lab, made)
  const backup = await untilEnded(ann, made.path, 'backups')
  t.match(backup, { status: 'failed', error: reason }, backup.log)
  t.same(await filesOf(k), [])
  await untilRunning(ann, made.path)
  t.equal(await cli('get', 'kept'), 'yes')
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  await ann.post(`${made.path}/backups`)
  const next = await untilEnded(ann, made.path, 'backups', 1)
  t.match(next, { status: 'succeeded' }, next.log)
})
