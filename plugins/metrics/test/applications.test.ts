/** What applications use, in containers of a real engine. */
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openEvents } from './event-reader.js'
import { busy, makeProject, runApplication } from './metrics-lab.js'

const usage = {
  cpu_percent: Number,
  memory_usage: Number,
  memory_limit: Number,
  network_rx_bytes: Number,
  network_tx_bytes: Number,
  recorded_at: String
}
const mebibyte = 2 ** 20

test('what applications use', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const project = await makeProject(admin)
  const runtime = k.service(containerRuntime)
  const app = await runApplication(k, admin, project, { script: busy, memoryLimit: 64 * mebibyte })
  const channel = `metrics:app:${app.id}`

  await t.test('subscribers hear of it every two seconds', async t => {
    const socket = await k.socket(admin)
    socket.subscribe(channel)
    await until(() => socket.frames.length >= 3, 'three messages')
    for (const frame of socket.frames) t.match(frame, { channel, event: 'metrics', data: usage })
    const { data } = socket.frames.at(-1) ?? {}
    t.ok(data.cpu_percent > 5 && data.cpu_percent < 250, `${data.cpu_percent} % of a core`)
    t.equal(data.memory_limit, 64 * mebibyte)
    t.ok(data.memory_usage > 0 && data.memory_usage < 64 * mebibyte)
    const times = socket.frames.map(one => one.data.recorded_at)
    t.same(times, [...new Set(times)].sort())
    await socket.close()
    await until(() => !k.hasSubscribers(channel), 'the end of the subscription')
  })

  await t.test('the stream has the same, and begins with a ping', async t => {
    const events = await openEvents(await k.as.token('metrics'), `${app.path}/metrics/stream`)
    t.match(events.text(), /^: ping\n\n/)
    await until(() => events.data().length >= 2, 'two points')
    t.match(events.data()[0], usage)
    events.close()
    await until(() => k.inFlight('metrics') === 0, 'the end of the stream')
  })

  await t.test('nothing comes while it does not run, and the subscription goes on with it', async t => {
    const socket = await k.socket(admin)
    socket.subscribe(channel)
    await until(() => socket.frames.length > 0, 'a message')
    t.equal((await admin.post(`${app.path}/stop`)).status, 200)
    await until(async () => (await admin.get(app.path)).body.status === 'stopped', 'it is stopped')
    // Of another one, which is measured in the same rounds.
    const other = await runApplication(k, admin, project)
    socket.subscribe(`metrics:app:${other.id}`)
    const of = (id: string) => socket.frames.filter(frame => frame.channel === `metrics:app:${id}`).length
    await until(() => of(other.id) > 0, 'a message of the other one')
    const before = of(app.id)
    await until(() => of(other.id) >= 4, 'some rounds')
    t.equal(of(app.id), before)
    t.equal((await admin.post(`${app.path}/start`)).status, 200)
    await until(() => of(app.id) >= before + 2, 'messages')
    t.equal(socket.frames.filter(({ event }) => event !== 'metrics').length, 0)
    await socket.close()
  })

  await t.test(
    'the container of a further deploy is followed, and one that goes between two samples missed by nobody',
    async () => {
      const other = await runApplication(k, admin, project)
      const socket = await k.socket(admin)
      socket.subscribe(`metrics:app:${other.id}`)
      await until(() => socket.frames.length > 0, 'a message')
      const next = await other.replace(busy)
      await runtime.remove(other.containerId)
      await until(() => socket.frames.at(-1)?.data.cpu_percent > 5, 'the busy one')
      await runtime.remove(next)
      await until(async () => (await admin.get(other.path)).body.status !== 'running', 'it has ended')
      await other.replace()
      const before = socket.frames.length
      await until(() => socket.frames.length > before, 'a message of the third one')
      await socket.close()
    }
  )

  await t.test('a stream ends with its application, and with access to its project', async t => {
    const doomed = await runApplication(k, admin, project)
    const events = await openEvents(admin, `${doomed.path}/metrics/stream`)
    await until(() => events.data().length > 0, 'a point')
    t.equal((await admin.delete(doomed.path)).status, 200)
    await until(() => events.hasEnded(), 'the end of the stream')

    await admin.put(`/api/projects/${project.id}/sharing`, { shared: true })
    const shown = await openEvents(await k.as.session('member'), `${app.path}/metrics/stream`)
    await admin.put(`/api/projects/${project.id}/sharing`, { shared: false })
    await until(() => shown.hasEnded(), 'the end of the stream')
  })

  await t.test('strangers get neither stream nor figures', async t => {
    const stranger = await k.as.session('stranger')
    for (const path of [
      `${app.path}/metrics/stream`,
      `${app.path}/metrics`,
      `/api/projects/${project.id}/metrics`
    ])
      t.equal((await stranger.get(path)).status, 404, path)
    const socket = await k.socket(stranger)
    socket.subscribe(channel)
    t.match(await socket.next(() => true), { event: 'error' })
    await socket.close()
    const foreign = await makeProject(admin)
    t.equal(
      (await admin.get(`/api/projects/${foreign.id}/applications/${app.id}/metrics/stream`)).status,
      404
    )
  })

  await t.test('a project tells what all of its applications use', async t => {
    const idle = (
      await admin.post(`/api/projects/${project.id}/applications`, {
        name: 'never deployed',
        type: 'image',
        build_type: 'image',
        source_image: 'busybox:lab'
      })
    ).body.id as string
    const { body, status } = await (await k.as.token('metrics', { pins: [project.id] })).get(
      `/api/projects/${project.id}/metrics`
    )
    t.equal(status, 200)
    t.match(body[app.id], {
      cpu_percent: Number,
      memory_used: Number,
      memory_limit: 64 * mebibyte,
      uptime_seconds: Number,
      status: 'running',
      domain: '',
      port: 8080
    })
    t.ok(body[app.id].cpu_percent > 5)
    t.ok(body[app.id].memory_used > 0)
    t.same(body[idle], {
      cpu_percent: 0,
      memory_used: 0,
      memory_limit: 0,
      uptime_seconds: 0,
      status: 'inactive',
      domain: '',
      port: 0
    })
    t.same((await admin.get(`/api/projects/${(await makeProject(admin)).id}/metrics`)).body, {})
  })

  await t.test(
    'without a runtime streams stay, figures of what runs are refused, and all goes on with it',
    async t => {
      const events = await openEvents(admin, `${app.path}/metrics/stream`)
      await until(() => events.data().length > 0, 'a point')
      await k.disable('runtime-docker', { force: true })
      await until(async () => {
        const answer = await admin.get(`/api/projects/${project.id}/metrics`)
        return answer.status === 503 && answer.body.code === 'E_PLUGIN_OFF'
      }, 'a refusal, once nobody has an answer of before')
      await k.enable('runtime-docker')
      const before = events.data().length
      await until(() => events.data().length > before, 'a further point')
      t.equal(events.hasEnded(), false)
      events.close()
    }
  )
})
