import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('a deleted application takes everything with it, even in the middle of a deploy', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await lab.application('web', sample('one'))
  t.match(await web.deployed(), { status: 'success' })
  await web.push(sample('never', 'ok', 'FROM node:20\nRUN sleep 600\n'))
  const deployment = await web.deploy()
  await until(
    async () => (await admin.get(`${web.path}/deployments/${deployment.id}`)).body.status === 'building',
    'it is building'
  )
  t.equal((await admin.delete(web.path)).status, 200)
  t.equal((await admin.get(`${web.path}/deployments`)).status, 404)
  t.equal((await admin.post(`${web.path}/deploy-hook`)).status, 404)
  t.equal((await admin.get(`/api/deployments?application_id=${web.id}`)).status, 404)
  await until(async () => (await web.containers()).length === 0, 'the containers are gone')
  await until(
    async () => (await engine.listImages({ filters: { label: [`application-id=${web.id}`] } })).length === 0,
    'the images are gone'
  )
})
