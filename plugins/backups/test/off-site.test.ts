import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { startS3Server } from '../../../lab/s3-server.js'
import {
  createDatabase,
  createVolume,
  ended,
  lines,
  openPlatform,
  pathOf,
  removeDatabase,
  storedIn
} from './kit.js'

test('only what leaves the machine is said to be kept elsewhere', { timeout: 120_000 }, async t => {
  const opened = await openPlatform(t)
  const { admin, project } = opened
  const s3 = await startS3Server(t)
  const { body: folder } = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: 'Folder',
    provider: 'local',
    prefix: 'deep'
  })
  const inFolder = async (path: string) => {
    const { body } = await admin.post(`${path}/backup-configs`, {
      destination_id: folder.id,
      schedule: '0 3 1 1 *'
    })
    t.equal((await admin.post(`${path}/backup-configs/${body.id}/run`)).status, 202)
    return await ended(admin, `${path}/backups`)
  }
  const id = await createDatabase(opened, 'Shop', lines(5))
  const path = pathOf(project, id)
  const here = { status: 'succeeded', has_remote: false, remote_key: '' }
  const local = await inFolder(path)
  t.match(local, here)

  const run = await storedIn(opened, s3, path)
  await run()
  const stored = await until(async () => {
    const all = (await admin.get(`${path}/backups`)).body as Array<{ id: string; status: string }>
    return all.find(one => one.id !== local.id && one.status !== 'running')
  }, 'the one in the bucket')
  const there = { status: 'succeeded', has_remote: true, remote_key: /^shop-/ }
  t.match(stored, there)

  const volume = await createVolume(opened, 'uploads', lines(5))
  const volumePath = `/api/projects/${project}/applications/${volume.application}/volumes/${volume.id}`
  const packed = await inFolder(volumePath)
  t.match(packed, { status: 'succeeded', has_remote: false })

  const ofId = (rows: ReadonlyArray<{ id: string }>, wanted: string) => rows.find(one => one.id === wanted)
  const all = (await admin.get(`/api/projects/${project}/backups`)).body
  t.match(ofId(all, local.id), here)
  t.match(ofId(all, packed.id), here)
  t.match(ofId(all, stored.id), there)
  await removeDatabase(opened, id)
  const orphans = (await admin.get(`/api/projects/${project}/orphaned-backups`)).body
  t.match(ofId(orphans, local.id), here)
  t.match(ofId(orphans, stored.id), there)
})
