import { createTestKernel, type TestClient, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { startEngineProxy } from '../../../lab/engine-proxy.js'
import { containerIn, goOn, projectOf } from './crash-lab.js'
import { containerOf, createDatabase, startLab, untilStatus } from './lab.js'

const docker = new Docker()
const redis = { type: 'other', image: 'redis:7', container_port: 6379 }

async function crashesToldTo(client: TestClient): Promise<readonly string[]> {
  const { body } = await client.get('/api/notifications')
  return (body.items as Array<{ type: string; title: string }>)
    .filter(({ type }) => type === 'database.crashed')
    .map(({ title }) => title)
}

test('what became of the container of a database while the platform was down is its status when it is back', async t => {
  if (!(await requireDatabaseImages(t))) return
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const [stopped, killed, gone] = await Promise.all(
    ['stopped', 'killed', 'gone'].map(async name => await createDatabase(lab, { ...redis, name }))
  )
  if (stopped === undefined || killed === undefined || gone === undefined) throw new Error('there are three')
  const { state } = first
  await first.stop()
  await (await containerIn(state, stopped.id)).stop({ t: 10 })
  await (await containerIn(state, killed.id)).kill()
  await (await containerIn(state, gone.id)).remove({ force: true, v: true })

  const k = await goOn(t, state)
  const ann = await k.as.session('ann')
  await untilStatus(ann, stopped.path, 'stopped')
  t.match((await ann.get(stopped.path)).body, { status: 'stopped', status_detail: null })
  await untilStatus(ann, killed.path, 'failed')
  t.match((await ann.get(killed.path)).body, { status_detail: /exit code 137/, container_missing: false })
  await untilStatus(ann, gone.path, 'failed')
  t.match((await ann.get(gone.path)).body, { status_detail: /was removed/, container_missing: true })
  await until(async () => (await crashesToldTo(ann)).length === 2, 'both failures to be told')
  t.notMatch((await crashesToldTo(ann)).join('\n'), /stopped/, 'and not the one that somebody has stopped')
})

test('what becomes of the container of a database while the engine cannot be heard is its status, and is told, once it is back', async t => {
  if (!(await requireDatabaseImages(t))) return
  const proxy = await startEngineProxy(t)
  const lab = await startLab(t, { environment: { DOCKER_HOST: proxy.address } })
  const { k, ann } = lab
  const { id, path } = await createDatabase(lab, redis)
  const container = docker.getContainer(await containerOf(k, id))
  const socket = await k.socket(ann)
  t.teardown(() => socket.close())
  const channel = `database-status:${id}`
  socket.subscribe(channel)
  await until(() => k.hasSubscribers(channel), 'the subscription')
  for (const [change, status] of [
    [async () => await container.stop({ t: 10 }), 'stopped'],
    [async () => await container.start(), 'running'],
    [async () => await container.kill(), 'failed']
  ] as const) {
    proxy.down()
    await change()
    const frames = socket.frames.length
    t.not((await ann.get(path)).body.status, status, `it is not known yet to be ${status}`)
    proxy.up()
    await untilStatus(ann, path, status)
    await until(() => socket.frames.length > frames, 'a word of it')
    t.same(socket.frames.at(-1)?.data, { database_id: id, status })
  }
})
