import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { hasVolume, volumeApplication } from './volume-lab.js'

test('a deleted volume leaves with the next deploy, its files stay unless asked for', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const kept = await web.addVolume('kept', '/kept')
  const gone = await web.addVolume('gone', '/gone')
  const engineName = (name: string): string => `busbar-vol-${web.id.slice(0, 8)}-${name}`
  await web.deployed()
  await web.run('echo 1 > /kept/file; echo 2 > /gone/file')

  t.match(await admin.delete(`${web.path}/volumes/${kept.id}`), {
    status: 200,
    body: {
      status: 'deleted',
      warning: /still has the volume kept, until the next deploy or reload; its files stay/
    }
  })
  t.match(await admin.delete(`${web.path}/volumes/${gone.id}?delete_data=true`), {
    status: 200,
    body: { status: 'deleted', warning: /still has the volume gone, .*; its files are removed then/ }
  })
  await lab.k.runRemovalsNow()
  t.equal(await web.run('cat /kept/file /gone/file'), '1\n2', 'the container that runs is left alone')
  await until(
    async () =>
      (await admin.post(`${web.path}/volumes`, { name: 'gone', mount_path: '/new' })).status === 409,
    'its name is not free before its files are gone'
  )
  t.match(await admin.post(`${web.path}/volumes`, { name: 'gone', mount_path: '/new' }), {
    body: { code: 'E_VOLUME_NAME_LEAVING' }
  })

  await web.deployed('reload')
  t.equal(await web.run('ls -d /kept /gone 2>/dev/null | wc -l'), '0')
  await until(async () => !(await hasVolume(engineName('gone'))), 'its files are gone', 60_000)
  t.ok(await hasVolume(engineName('kept')))

  await web.addVolume('kept', '/again')
  await until(
    async () =>
      (await admin.post(`${web.path}/volumes`, { name: 'gone', mount_path: '/gone' })).status === 201,
    'its name is free'
  )
  await web.deployed()
  t.equal(
    await web.run('cat /again/file; ls /gone | wc -l'),
    '1\n0',
    'the kept files are there, the others not'
  )

  const unused = await web.addVolume('unused', '/unused')
  t.strictSame((await admin.delete(`${web.path}/volumes/${unused.id}?delete_data=true`)).body, {
    status: 'deleted'
  })
  await web.untilOne()
  t.equal((await admin.delete(`/api/projects/${lab.projectId}`)).status, 200)
  await lab.k.runRemovalsNow()
  await until(
    async () => !(await hasVolume(engineName('gone'))) && !(await hasVolume(engineName('kept'))),
    'all volumes go with the project',
    60_000
  )
})
