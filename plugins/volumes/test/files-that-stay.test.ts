import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab } from '../../deployments/test/deploy-lab.js'
import { hasVolume, volumeApplication } from './volume-lab.js'

test('files in a volume outlive deploys, reloads and rollbacks, and go with the application', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const first = await web.deployed()
  const added = await web.addVolume('Data', '/data')
  t.match((await admin.get(web.path)).body, { pending_change: 'config' })
  t.equal(await web.run('ls -d /data || echo none'), 'ls: /data: No such file or directory\nnone')

  await web.deployed('reload')
  const name = `busbar-vol-${web.id.slice(0, 8)}-data`
  t.match((await engine.getVolume(name).inspect()).Labels, {
    'managed-by': 'busbar',
    'application-id': web.id,
    'project-id': lab.projectId,
    'deployment-id': ''
  })
  t.match((await web.container()).Mounts, [{ Type: 'volume', Name: name, Destination: '/data', RW: true }])
  await web.run('head -c 300000 /dev/zero > /data/large; echo kept > /data/file; sync')

  for (const [verb, body] of [['deploy'], ['reload'], ['rollback', { deployment_id: first.id }]] as const) {
    const { build_logs: log } = await web.deployed(verb, body)
    t.equal(await web.run('cat /data/file'), 'kept', verb)
    t.match(log, /The old and the new container both have \/data until the old one has ended/)
  }
  await until(
    async () => {
      const [volume] = (await admin.get(`${web.path}/volumes`)).body
      return volume.size_bytes >= 300_000 && volume.size_bytes < 1_000_000
    },
    'the size is told',
    90_000
  )
  t.match((await admin.get(`${web.path}/volumes`)).body, [{ id: added.id, name: 'data' }])

  const stopped = await admin.post(`${web.path}/stop`)
  t.equal(stopped.status, 200)
  t.notMatch((await web.deployed()).build_logs, /both have/, 'of a stopped one there are no two')
  t.equal(await web.run('cat /data/file'), 'kept')

  t.equal((await admin.delete(web.path)).status, 200)
  await lab.k.runRemovalsNow()
  await until(async () => !(await hasVolume(name)), 'the volume is gone', 60_000)
  await until(
    async () => (await lab.k.query('select id from applications.application')).length === 0,
    'all is'
  )
  t.same(await lab.k.query('select name from volumes.engine_volume'), [])
  t.same(await lab.k.query('select id from volumes.volume'), [])
})
