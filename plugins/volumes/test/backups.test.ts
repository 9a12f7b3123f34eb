import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { ended } from '../../backups/test/kit.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { volumeApplication } from './volume-lab.js'

test('a volume is backed up, proven and restored, with its application standing still meanwhile', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const { id: volumeId } = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run(
    'mkdir /data/folder; echo one > /data/folder/file; head -c 2000000 /dev/urandom > /data/large'
  )
  const sum = await web.run('cd /data; find . -type f -exec md5sum {} + | sort')
  const path = `${web.path}/volumes/${volumeId}`
  const project = `/api/projects/${lab.projectId}`

  const destination = await admin.post(`${project}/backup-destinations`, { name: 'here', provider: 'local' })
  t.equal(destination.status, 201)
  const config = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 * * *',
    keep_latest: 3,
    quiesce: true
  })
  t.match(config, { status: 201, body: { application_volume_id: volumeId, quiesce: true } })
  t.match((await admin.get(`${web.path}/volume-backup-configs`)).body, [
    { volume_name: 'data', mount_path: '/data' }
  ])
  const { StartedAt: startedAt } = (await web.container()).State
  t.equal((await admin.post(`${path}/backup-configs/${config.body.id}/run`)).status, 202)
  const newest = async () => (await admin.get(`${path}/backups`)).body[0]
  await until(async () => ['succeeded', 'failed'].includes((await newest())?.status), 'it has ended', 120_000)
  const backup = await newest()
  t.match(backup, { status: 'succeeded', error: '' }, JSON.stringify(backup))
  await until(async () => (await web.container()).State.Running, 'the application runs again')
  t.not((await web.container()).State.StartedAt, startedAt, 'it stood still')

  t.match(backup.proof, { status: 'unproven', checked_at: null })
  t.equal((await admin.post(`${path}/backups/${backup.id}/check`)).status, 202)
  const proof = async () => (await newest()).proof
  await until(async () => ['proven', 'failed'].includes((await proof()).status), 'it has ended', 120_000)
  t.match(await proof(), { status: 'proven', rows: 2, checked_at: /^\d{4}-/, error: null })

  await web.run('rm -rf /data/*; echo other > /data/other')
  t.equal((await admin.post(`${path}/backups/${backup.id}/restore`)).status, 202)
  const restore = async () => (await admin.get(`${path}/restores`)).body[0]
  await until(
    async () => ['succeeded', 'failed'].includes((await restore())?.status),
    'it has ended',
    120_000
  )
  t.match(await restore(), { status: 'succeeded', backup_id: backup.id }, JSON.stringify(await restore()))
  await until(async () => (await admin.get(web.path)).body.status === 'running', 'the application runs again')
  t.equal(await web.run('cd /data; find . -type f -exec md5sum {} + | sort'), sum)

  t.match(await admin.delete(path), { status: 200, body: { warning: /its backup is kept/ } })
  await lab.k.runRemovalsNow()
  const orphans = async () => (await admin.get(`${project}/orphaned-volume-backups`)).body
  await until(async () => (await orphans()).length === 1, 'its backup to be orphaned')
  t.match(await orphans(), [{ id: backup.id, volume_name: 'data', application_id: web.id }])
  t.match((await admin.get(`${web.path}/volume-backup-configs`)).body, { length: 0 })
  const again = await web.addVolume('data', '/again')
  const nextPath = `${web.path}/volumes/${again.id as string}`
  t.match((await admin.get(`${nextPath}/backups`)).body, [{ id: backup.id }])
  await web.deployed()
  t.equal(await web.run('cd /again; find . -type f -exec md5sum {} + | sort'), sum, 'with its files')
  await web.run('rm -rf /again/*')
  t.equal((await admin.post(`${nextPath}/backups/${backup.id}/restore`)).status, 202)
  t.match(await ended(admin, `${nextPath}/restores`), { status: 'succeeded' })
  await until(async () => (await admin.get(web.path)).body.status === 'running', 'the application runs again')
  t.equal(await web.run('cd /again; find . -type f -exec md5sum {} + | sort'), sum)
})
