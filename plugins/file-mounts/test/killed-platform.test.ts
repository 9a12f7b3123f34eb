import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { killAt } from '../../deployments/test/crash-lab.js'
import { containersOf, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { hasVolume, volumeApplication } from '../../volumes/test/volume-lab.js'
import { filesWith, holdersOf } from './holders.js'

test('a platform that is killed in a deploy leaves no file behind, and no volume of it empty', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const secret = 'never in clear on the disk of the platform'
  await web.addVolume('data', '/data')
  await admin.post(`${web.path}/file-mounts`, { mount_path: '/app/key', content: secret, is_secret: true })
  await web.deployed()
  await web.run('echo kept > /data/file')
  const [serving] = await holdersOf(web.id)

  await lab.k.stop()
  const deploymentId = await killAt(lab, web as never, 'before start')
  t.equal((await containersOf(web.id)).length, 4, 'two containers, and what holds the files of each')
  t.equal((await holdersOf(web.id)).length, 2)
  t.same(await filesWith(lab.k.state.directory, secret), [], 'on the disk of the platform there is nothing')

  await lab.restart()
  const read = async () =>
    (await (await lab.k.as.session()).get(`${web.path}/deployments/${deploymentId}`)).body
  await until(async () => (await read()).status === 'failed', 'it has failed')
  await until(async () => (await holdersOf(web.id)).length === 1, 'the files of the new container are gone')
  t.equal((await holdersOf(web.id))[0]?.Id, serving?.Id, 'those of the one that serves are not')
  t.equal(await web.run('cat /app/key /data/file'), `${secret}kept`)
  t.equal((await engine.listContainers({ filters: { label: [`application-id=${web.id}`] } })).length, 1)
  t.ok(await hasVolume(`busbar-vol-${web.id.slice(0, 8)}-data`))
  await web.deployed()
  t.equal(await web.run('cat /app/key /data/file'), `${secret}kept`)
})
