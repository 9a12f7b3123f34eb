import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { sourceOf, sourceOptions, work } from './source-lab.js'
import { volumeApplication } from './volume-lab.js'

test('with quiesce the application stands still while its volume is copied', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  const source = sourceOf()
  const dump = await source.dump(id, { databases: [], quiesce: true }, work())
  t.equal((await web.container()).State.Running, false)
  t.match(await admin.post(`${web.path}/restart`), {
    status: 409,
    body: { error: /a backup of its volume data/ }
  })
  await buffer(dump.content)
  t.match(await dump.end(), { rows: 0 })
  // The platform may have been started anew in between.
  await lab.restart()
  await sourceOf().settle(id, 'backup', work())
  await until(
    async () => (await (await lab.k.as.session()).get(web.path)).body.status === 'running',
    'it runs'
  )
  t.equal((await web.container()).State.Running, true)
  t.equal((await (await lab.k.as.session()).post(`${web.path}/stop`)).status, 200)
  const quiet = await sourceOf().dump(id, { databases: [], quiesce: true }, work())
  await buffer(quiet.content)
  await sourceOf().settle(id, 'backup', work())
  t.equal((await web.container()).State.Running, false, 'one that somebody has stopped stays so')
})

test('two volumes of an application stand still together until both are copied', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id: first } = await web.addVolume('first', '/first')
  const { id: second } = await web.addVolume('second', '/second')
  await web.deployed()
  const source = sourceOf()
  const isRunning = async (): Promise<boolean> => (await web.container()).State.Running
  const begin = async (id: string) =>
    await buffer((await source.dump(id, { databases: [], quiesce: true }, work())).content)
  await begin(first)
  await begin(second)
  await source.settle(first, 'backup', work())
  t.equal(await isRunning(), false, 'the other one is being copied still')
  await source.settle(second, 'backup', work())
  t.equal(await isRunning(), true)

  await Promise.all([begin(first), begin(second)])
  t.equal(await isRunning(), false)
  await Promise.all([source.settle(first, 'backup', work()), source.settle(second, 'backup', work())])
  t.equal(await isRunning(), true, 'when both end at once, one of them starts it')
})

test('what an earlier backup could not start again is started before another one begins', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  const dump = async () =>
    await buffer((await sourceOf().dump(id, { databases: [], quiesce: true }, work())).content)
  await dump()
  // Nobody has settled it.
  await dump()
  t.equal((await web.container()).State.Running, false, 'it stands still for this one too')
  await sourceOf().settle(id, 'backup', work())
  t.equal((await web.container()).State.Running, true)
})
