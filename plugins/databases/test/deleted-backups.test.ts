import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, runIn, startLab, untilRunning } from './lab.js'
import { leftOf, untilEnded } from './postgres-lab.js'

test('the backups of a deleted database stay, unless they are to go with it', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann, k, projectId } = lab
  const made = []
  for (const name of ['kept', 'gone']) {
    const one = await createDatabase(lab, { name, type: 'redis', version: '7' })
    await ann.post(`${one.path}/backups`)
    const backup = await untilEnded(ann, one.path, 'backups')
    t.equal(backup.status, 'succeeded', backup.log)
    await untilRunning(ann, one.path)
    t.match((await ann.get(`${one.path}/deletion-impact`)).body, { backup_count: 1 })
    made.push({ ...one, backupId: backup.id as string })
  }
  const [kept, gone] = made
  if (kept === undefined || gone === undefined) throw new Error('two were made')
  t.match(await ann.delete(kept.path), { status: 200 })
  t.match(await ann.delete(`${gone.path}?delete_backups=true`), { status: 200 })
  await k.runRemovalsNow()
  const all = `/api/projects/${projectId}/orphaned-backups`
  await until(async () => (await ann.get(all)).body.length > 0, 'the backup that stays to be told')
  const ids = async (): Promise<string[]> =>
    (await k.query<{ id: string }>('select id from backups.backup order by id')).map(({ id }) => id)
  await until(async () => (await ids()).length === 1, 'the other one to be erased', 60_000)
  t.same(await ids(), [kept.backupId])
  t.match((await ann.get(all)).body, { length: 1, 0: { id: kept.backupId } })
})

test('a deleted Redis database is made again from its backup, with its keys and credentials', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann, k, projectId } = lab
  const password = 'with "quotes" \\ and # $x'
  const { id, path, slug } = await createDatabase(lab, {
    name: 'sessions',
    type: 'redis',
    version: '7',
    credentials: { password },
    cpu_limit: 0.5,
    memory_limit: 256
  })
  const cli = async (databaseId: string, ...words: string[]) =>
    await runIn(k, databaseId, ['redis-cli', '-h', '127.0.0.1', ...words], { REDISCLI_AUTH: password })
  await cli(id, 'set', 'kept', 'yes')
  await cli(id, '-n', '3', 'hset', 'hash', 'field', 'value')
  await cli(id, 'set', 'expiring', 'yes', 'EX', '864000')
  const { body: before } = await ann.get(path)
  const { body: signIn } = await ann.get(`${path}/credentials/reveal`)
  await ann.post(`${path}/backups`)
  const backup = await untilEnded(ann, path, 'backups')
  t.equal(backup.status, 'succeeded', backup.log)
  await untilRunning(ann, path)
  await cli(id, 'set', 'later', 'yes')
  t.match(await ann.delete(path), { status: 200 })
  await k.runRemovalsNow()
  const all = `/api/projects/${projectId}/orphaned-backups`
  await until(async () => (await ann.get(all)).body.length === 1, 'its backup to be told')
  t.match(await leftOf(k, { id }), { containers: [], volumes: 0 }, 'nothing else of it is left')

  const made = await ann.post(`${all}/${backup.id}/restore`)
  t.match(made, { status: 202, body: { name: 'sessions', status: 'creating' } })
  const again = made.body.id as string
  t.not(again, id)
  const there = `${lab.all}/${again}`
  const restore = await untilEnded(ann, there, 'restores')
  t.match(restore, { status: 'succeeded' }, `${restore.error} ${restore.log}`)
  await untilRunning(ann, there)
  t.equal(await cli(again, 'get', 'kept'), 'yes')
  t.equal(await cli(again, '-n', '3', 'hget', 'hash', 'field'), 'value')
  t.match(Number(await cli(again, 'ttl', 'expiring')) > 800_000, true, 'what was to expire still is')
  t.equal(await cli(again, 'exists', 'later'), '0')
  t.match(await cli(again, '-h', '127.0.0.1', '--no-auth-warning', '-a', 'wrong', 'ping'), /NOAUTH|WRONGPASS/)
  t.same((await ann.get(`${there}/credentials/reveal`)).body, signIn, 'applications sign in as before')
  const { version, cpu_limit, memory_limit } = before
  t.match((await ann.get(there)).body, { slug, version, cpu_limit, memory_limit, status: 'running' })
  t.match(await leftOf(k, { id: again }), { containers: [slug], volumes: 1 })
  t.match(await ann.post(`${there}/restart`), { status: 200 })
  await until(async () => (await cli(again, 'get', 'kept').catch(() => '')) === 'yes', 'it is on the disk')
})
