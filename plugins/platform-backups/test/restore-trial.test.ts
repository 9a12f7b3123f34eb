import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { removeInstallation } from '../../../lab/installation.js'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { busbar } from './cli.js'
import { archives, backUp, makeKey } from './kit.js'
import { folder } from './original-platform.js'

const instanceIdOf = async (directory: string): Promise<string> =>
  await readFile(join(directory, 'data/runtime-docker/instance-id'), 'utf8').catch(() => '')
const tagOf = (key: unknown): string => String(key).split('-')[3] ?? ''

/** A project with a destination, a schedule, and a backup in that destination and in the bucket of the platform; their keys. */
async function backedUpProject(k: TestKernel, host: string) {
  const admin = await k.as.session()
  const { body: project } = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
  const { body: destination } = await admin.post(`/api/projects/${project.id}/backup-destinations`, {
    name: 'Store',
    provider: 'minio',
    endpoint: host,
    bucket: s3Bucket,
    use_ssl: false,
    ...s3Keys
  })
  const [source, config] = [randomUUID(), randomUUID()]
  await k.query(
    `insert into backups.source (id, project_id, kind, resource_id, name, slug, engine, version)
    values ($1, $2, 'database', $3, 'Orders', 'orders', 'postgres', '17')`,
    [source, project.id, randomUUID()]
  )
  await k.query(
    `insert into backups.config (id, source_id, destination_id, schedule, time_zone, drill_schedule, prefix, enabled, quiesce,
      databases, created_at, updated_at)
    values ($1, $2, $3, '0 3 * * *', 'UTC', '30 3 * * 0', '', true, false, '{}', now(), now())`,
    [config, source, destination.id]
  )
  for (const [key, job] of [
    [`set:config/${config}`, 'due'],
    [`set:drill/${config}`, 'drill-due']
  ])
    await k.query(
      `insert into kernel.schedule (plugin, key, declared, cron, time_zone, job, payload, missed, next_at)
      values ('backups', $1, false, '0 3 * * *', 'UTC', $2, '{}', 'run-once', now() + interval '1 day')`,
      [key, job]
    )
  const keys = ['orders-1.backup.gz.age', `busbar/databases/${project.id}/orders-2.backup.gz.age`]
  for (const [at, key] of keys.entries())
    await k.query(
      `insert into backups.backup (id, source_id, destination_id, in_platform_store, status, started_at, finished_at, key, has_file,
        version, databases, quiesce)
      values ($1, $2, $3, $4, 'succeeded', now(), now(), $5, true, '17', '{}', false)`,
      [randomUUID(), source, at === 0 ? destination.id : null, at === 1, key]
    )
  return { admin, project: project.id as string, keys }
}

async function restored(t: Test, file: string, key: string, flags: readonly string[]) {
  const directory = await folder(t)
  const database = await createDatabase()
  const said = await busbar(['restore', file, ...flags], {
    directory,
    databaseUrl: database.url,
    environment: { BUSBAR_RECOVERY_KEY: key }
  })
  return { said, state: { directory, database } }
}

test('a copy beside the original', { timeout: 590_000 }, async t => {
  const s3 = await startS3Server(t)
  const k = await createTestKernel({})
  t.teardown(() => k.close())
  const { admin, project, keys } = await backedUpProject(k, s3.host)
  for (const key of keys) s3.replace(key, Buffer.from('a backup of production'))
  const recoveryKey = await makeKey(admin)
  const remote = { enabled: true, endpoint: s3.host, bucket: s3Bucket, use_ssl: false }
  t.equal((await admin.put('/api/backups/remote', { ...remote, ...s3Keys })).status, 200)
  const run = await backUp(admin)
  t.match(run, { status: 'succeeded', remote_key: /^busbar\// })
  const [file = ''] = await archives(k)
  const kept = [...s3.objects.keys()].sort()
  const instanceId = await instanceIdOf(k.state.directory)
  await k.stop()

  await t.test('one that replaces the original goes on as that', async t => {
    const { said, state } = await restored(t, file, recoveryKey, [])
    t.equal(said.code, 0, said.stderr)
    t.equal(await instanceIdOf(state.directory), instanceId)
    const next = await createTestKernel({ state })
    t.teardown(() => next.close())
    const again = await next.as.session()
    t.match((await again.get('/api/backups/status')).body, { remote_enabled: true })
    const schedules = await next.query<{ key: string }>(
      `select key from kernel.schedule where plugin in ('backups', 'platform-backups') and not declared`
    )
    t.equal(schedules.length, 3)
    t.equal((await next.query('select from backups.config where enabled')).length, 1)
    const later = await backUp(again)
    t.equal(tagOf(later.remote_key), tagOf(run.remote_key), 'what it uploads is of the same installation')
    s3.lose(String(later.remote_key))
  })

  await t.test('one for a trial does nothing by itself, and takes nothing away', async t => {
    const { said, state } = await restored(t, file, recoveryKey, ['--trial'])
    t.equal(said.code, 0, said.stderr)
    t.match(said.stdout, /remote of backups of the platform is off/)
    t.match(said.stdout, /schedules of backups and drills are off \(1 were on\)/)
    const next = await createTestKernel({ state, environment: { BACKUP_REMOTE_ENABLED: 'true' } })
    t.teardown(async () => {
      await next.stop()
      await removeInstallation(state)
      await next.close()
    })
    if (instanceId !== '') t.not(await instanceIdOf(state.directory), instanceId, 'containers are its own')
    const again = await next.as.session()
    t.match((await again.get('/api/backups/status')).body, {
      remote_enabled: false,
      remote: { bucket: s3Bucket }
    })
    t.same(
      await next.query(
        `select key from kernel.schedule where plugin in ('backups', 'platform-backups') and not declared`
      ),
      []
    )
    t.same(await next.query('select enabled, drill_schedule from backups.config'), [
      { enabled: false, drill_schedule: '' }
    ])
    t.match(await backUp(again), { status: 'succeeded', remote_key: null }, 'one is made when asked for')
    t.same([...s3.objects.keys()].sort(), kept, 'and not uploaded')

    t.equal((await again.put('/api/backups/remote', { enabled: true })).status, 200)
    const uploaded = await backUp(again)
    t.match(uploaded, { status: 'succeeded' })
    t.not(tagOf(uploaded.remote_key), tagOf(run.remote_key), 'it is an installation of its own')
    s3.lose(String(uploaded.remote_key))

    t.equal((await again.delete(`/api/projects/${project}`)).status, 200)
    await until(
      async () => (await next.query('select from projects.project where id = $1', [project])).length === 0,
      'the project to be gone'
    )
    t.same(await next.query('select from backups.backup'), [])
    t.same([...s3.objects.keys()].sort(), kept, 'files of the original stay')
    t.notOk(s3.requests.some(({ method, key }) => method === 'DELETE' && keys.includes(key)))
  })
})
