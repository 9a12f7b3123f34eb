import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, engine, openLab } from '../../deployments/test/deploy-lab.js'
import { delivered, holds, itemsOf, Stream } from './inbox-lab.js'

/** An application of an image that serves, and does what it is told after that. */
async function deploy(lab: DeployLab, name: string, then: string): Promise<{ path: string; status: string }> {
  const admin = await lab.k.as.session()
  const { body } = await admin.post(`/api/projects/${lab.projectId}/applications`, {
    name,
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab',
    container_port: 8080,
    start_command: `sh -c "httpd -p 8080 -h /tmp; ${then}"`
  })
  const path = `/api/projects/${lab.projectId}/applications/${body.id as string}`
  const begun = (await admin.post(`${path}/deploy`)).body.id as string
  const status = await until(
    async () => {
      lab.k.resetRateLimits()
      const { status: now } = (await admin.get(`${path}/deployments/${begun}`)).body
      return now === 'success' || now === 'failed' ? (now as string) : undefined
    },
    'it has ended',
    90_000
  )
  return { path, status }
}

test('a deployment that succeeds, one that fails, and a crash come into the inbox and its stream', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const stream = await Stream.open(admin)
  const web = await deploy(lab, 'web', 'sleep 6; exit 3')
  t.equal(web.status, 'success')
  await stream.has(2)
  t.same(stream.titles, ['Deployment of web succeeded', 'web has crashed'])
  t.equal(stream.frames[1]?.notification.link, web.path.replace('/api', ''))
  const broken = await deploy(lab, 'broken', 'exit 4')
  t.equal(broken.status, 'failed')
  await stream.has(3)
  t.match(stream.frames[2]?.notification, {
    type: 'deployment.failed',
    title: 'Deployment of broken failed',
    body: /\w+/
  })
  t.equal(stream.frames[2]?.notification.link, `${broken.path.replace('/api', '')}/deployments`)
  // It is started anew again and again, and crashes each time.
  const { slug } = (await admin.get(web.path)).body
  await until(
    async () => (await engine.getContainer(slug as string).inspect()).RestartCount >= 3,
    'it has crashed three times'
  )
  await delivered(lab.k)
  t.equal((await itemsOf(admin)).length, 3, 'a crash that comes again and again is told once')
  stream.close()
})

test('an application that ends with an error because it is stopped has not crashed', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(async () => await lab.close())
  const admin = await lab.k.as.session()
  const web = await deploy(lab, 'web', "trap 'exit 1' TERM; while :; do sleep 0.1; done")
  t.equal(web.status, 'success')
  await holds(admin, 1)
  const stop = async () => {
    lab.k.resetRateLimits()
    return await admin.post(`${web.path}/stop`)
  }
  t.match(await stop(), { status: 200 })
  await until(async () => (await admin.get(web.path)).body.status === 'stopped', 'it is stopped')
  t.match(await admin.post(`${web.path}/start`), { status: 200 })
  t.match(await admin.post(`${web.path}/restart`), { status: 200 })
  await until(async () => (await admin.get(web.path)).body.status === 'running', 'it runs again')
  await delivered(lab.k)
  t.same(
    (await itemsOf(admin)).map(({ title }) => title),
    ['Deployment of web succeeded']
  )
})
