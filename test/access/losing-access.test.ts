import { createTestKernel, TestClient, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type Held, hears, hold, limitMs, live } from './held-streams.js'

async function isLost(t: Test, held: Held, channel: string): Promise<void> {
  t.match(
    await held.channel.next(({ channel: name, event }) => name === channel && event === 'error', limitMs),
    { data: { error: 'access denied' } },
    'the subscription'
  )
  t.equal(await held.socket.closed(limitMs), 1008, 'the socket of a plugin')
  await t.resolves(held.streamEnded, 'the stream')
}

test('whoever loses a project hears nothing more of it, in any process, and others go on', async t => {
  const k = await createTestKernel({ inline: [live] })
  t.teardown(async () => {
    await k.close()
  })
  const two = await createTestKernel({ state: k.state, inline: [live] })
  t.teardown(async () => {
    await two.stop()
  })
  const [ann, vic, ed] = [await k.as.session('ann'), await k.as.session('vic'), await k.as.session('ed')]
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const path = `/api/projects/${project}`
  const application = (
    await ann.post(`${path}/applications`, {
      name: 'web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
  ).body.id as string
  const channel = `container-status:${application}`
  for (const name of ['vic', 'ed'])
    t.equal(
      (await ann.put(`${path}/members`, { email: (await k.user(name)).email, role: 'viewer' })).status,
      200
    )
  const there = (client: TestClient): TestClient => new TestClient(two.url, client.credential)

  const [here, elsewhere, remains] = [
    await hold(k, vic, project, channel),
    await hold(two, there(vic), project, channel),
    await hold(two, there(ed), project, channel)
  ]
  t.equal((await ann.delete(`${path}/members/${vic.userId}`)).status, 200)
  for (const held of [here, elsewhere]) await isLost(t, held, channel)
  here.channel.subscribe(channel)
  const refusals = (): number => here.channel.frames.filter(({ event }) => event === 'error').length
  await until(() => refusals() >= 2, 'both subscriptions are refused')
  t.equal(refusals(), 2, 'nor may it be asked for again')
  await hears(two, remains.channel, channel, 'second')
  t.notOk(here.channel.frames.some(({ data }) => data.status === 'second'))
  t.equal(remains.socket.closeCode, undefined)

  t.equal((await ann.put(`${path}/sharing`, { shared: true })).status, 200)
  const shared = await hold(k, vic, project, channel)
  t.equal((await ann.put(`${path}/sharing`, { shared: false })).status, 200)
  await isLost(t, shared, channel)
  await hears(two, remains.channel, channel, 'third')

  t.equal((await ed.delete(`${path}/members/${ed.userId}`)).status, 200)
  await isLost(t, remains, channel)

  await ann.put(`${path}/members`, { email: (await k.user('vic')).email, role: 'viewer' })
  const deleted = [await hold(k, vic, project, channel), await hold(two, there(vic), project, channel)]
  t.equal((await (await k.as.session()).delete(`/api/users/${vic.userId}`)).status, 200)
  for (const held of deleted) {
    t.equal(await held.channel.closed(limitMs), 1008, 'the connection itself')
    t.equal(await held.socket.closed(limitMs), 1008, 'the socket of a plugin')
    await t.resolves(held.streamEnded, 'the stream')
  }
})

test('a subscription that sleeps while its plugin is off does not wake up for whoever has lost the project', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const [admin, ann, vic, ed] = [
    await k.as.session(),
    await k.as.session('ann'),
    await k.as.session('vic'),
    await k.as.session('ed')
  ]
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const path = `/api/projects/${project}`
  const application = (
    await ann.post(`${path}/applications`, {
      name: 'web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
  ).body.id as string
  const channel = `container-status:${application}`
  for (const name of ['vic', 'ed'])
    await ann.put(`${path}/members`, { email: (await k.user(name)).email, role: 'viewer' })
  const [lost, remains] = [await k.socket(vic), await k.socket(ed)]
  for (const socket of [lost, remains]) {
    socket.subscribe(channel)
    await hears(k, socket, channel, 'first')
  }
  t.equal((await admin.post('/api/plugins/applications/disable', { cascade: true })).status, 200)
  await ann.delete(`${path}/members/${vic.userId}`)
  t.equal((await admin.post('/api/plugins/applications/enable')).status, 200)
  t.match(await lost.next(({ event }) => event === 'error', limitMs), {
    channel,
    data: { error: 'access denied' }
  })
  await hears(k, remains, channel, 'second')
  t.notOk(remains.frames.some(({ event }) => event === 'error'))
})
