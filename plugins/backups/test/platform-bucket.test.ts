import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type S3Server, s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import {
  backUp,
  contentOf,
  createDatabase,
  createProject,
  lines,
  openPlatform,
  pathOf,
  restore,
  writeContent
} from './kit.js'

const remoteAt = ({ host }: S3Server) => ({
  enabled: true,
  endpoint: host,
  bucket: s3Bucket,
  prefix: 'busbar/',
  use_ssl: false,
  ...s3Keys
})

test('a project goes whose backups are in the bucket of the platform', { timeout: 120_000 }, async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { k, admin } = opened
  const gone = async (project: string) =>
    (await k.query('select from projects.project where id = $1', [project])).length === 0
  for (const [name, change] of [
    ['off', { enabled: false }],
    ['away', {}]
  ] as const)
    await t.test(`which is ${name}`, async t => {
      s3.fault = undefined
      t.equal((await admin.put('/api/backups/remote', remoteAt(s3))).status, 200)
      const project = await createProject(admin, `Shop-${name}`)
      for (const number of [1, 2]) {
        const id = await createDatabase({ ...opened, project }, `Database-${number}`, lines(10))
        t.match(await backUp(admin, pathOf(project, id)), { status: 'succeeded', has_remote: true })
      }
      t.equal((await admin.put('/api/backups/remote', change)).status, 200)
      s3.fault = () => 'refuse'
      t.equal((await admin.delete(`/api/projects/${project}`)).status, 200)
      await until(async () => await gone(project), 'the project to be gone')
      s3.fault = undefined
    })
})

test('backups stay what they are when the platform gets another bucket', { timeout: 240_000 }, async t => {
  const [former, present] = [await startS3Server(t), await startS3Server(t)]
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  t.equal((await admin.put('/api/backups/remote', remoteAt(former))).status, 200)
  const content = lines(100)
  const id = await createDatabase(opened, 'Central', content)
  const path = pathOf(project, id)
  const backup = await backUp(admin, path)
  const key = backup.remote_key as string
  t.ok(former.objects.has(key))
  t.equal((await admin.put('/api/backups/remote', remoteAt(present))).status, 200)
  await writeContent(probe, id, 'as it is now\n')
  const reason = /^the file is in a bucket that the platform had before/

  await t.test('one that is in the former one is not restored, and is not told to be lost', async t => {
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'failed', error: reason })
    t.equal(await contentOf(probe, id), 'as it is now\n')
    t.equal((await admin.post(`${path}/backups/${backup.id}/check`)).status, 202)
    const proof = await until(async () => {
      const one = (await admin.get(`${path}/backups`)).body[0].proof
      return one.status === 'running' ? undefined : one
    }, 'the drill to end')
    t.match(proof, { status: 'failed', error: reason })
  })

  await t.test('one that was copied along is', async t => {
    present.replace(key, former.objects.get(key) ?? Buffer.alloc(0))
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded' })
    t.equal(await contentOf(probe, id), content)
    present.lose(key)
  })

  await t.test('the next one is in the new one', async t => {
    const next = await backUp(admin, path)
    t.match(next, { status: 'succeeded' })
    t.ok(present.objects.has(next.remote_key as string))
  })

  await t.test('one that is deleted is known until its file is gone', async t => {
    const asked = present.requests.length
    t.equal((await admin.delete(`${path}/backups/${backup.id}`)).status, 200)
    await until(
      () => present.requests.slice(asked).some(request => request.key === key),
      'it to be looked for in the new one'
    )
    const isKnown = async () =>
      (await k.query('select from backups.backup where id = $1', [backup.id])).length === 1
    await until(
      async () =>
        (
          await k.query(
            "select from graphile_worker.jobs where task_identifier = 'backups:erase' and last_error is not null"
          )
        ).length > 0 || !(await isKnown()),
      'the look to be over'
    )
    t.ok(await isKnown())
    t.ok(former.objects.has(key))
    t.equal((await admin.put('/api/backups/remote', remoteAt(former))).status, 200)
    await k.enqueue('backups', 'sweep', {})
    await until(() => !former.objects.has(key), 'the file to go')
    await until(async () => !(await isKnown()), 'it to be forgotten')
  })
})
