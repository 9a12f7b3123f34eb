import { createTestKernel, TestClient, type TestKernel, testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type Held, hears, hold, limitMs, live } from './held-streams.js'

/** One more session of the user. */
async function signIn(k: TestKernel, name: string): Promise<TestClient> {
  const { email, password } = await k.user(name)
  const { status, headers } = await k.as.anonymous().post('/api/auth/login', { email, password })
  if (status !== 200) throw new Error(`the login was answered ${status}`)
  return new TestClient(k.url, credentialOf(headers['set-cookie'] ?? []))
}

function credentialOf(setCookies: readonly string[]): Record<string, string> {
  const cookies = setCookies.map(line => line.split(';')[0] ?? '')
  const csrf = cookies.find(cookie => cookie.startsWith('csrf_token='))?.split('=')[1] ?? ''
  return { cookie: cookies.join('; '), 'x-csrf-token': csrf }
}

async function projectOf(client: TestClient): Promise<{ project: string; channel: string }> {
  const project = (await client.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const application = await client.post(`/api/projects/${project}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  return { project, channel: `container-status:${application.body.id as string}` }
}

async function hasEnded(t: Test, held: Held): Promise<void> {
  t.equal(await held.channel.closed(limitMs), 1008, 'the socket with its subscriptions')
  t.equal(await held.socket.closed(limitMs), 1008, 'the socket of a plugin')
  await t.resolves(held.streamEnded, 'the stream')
}

/** A socket on `/api/ws` has the rights of its handshake until it drops. */
async function hasEndedButForChannels(t: Test, { channel, socket, streamEnded }: Held): Promise<void> {
  t.equal(await socket.closed(limitMs), 1008, 'the socket of a plugin')
  await t.resolves(streamEnded, 'the stream')
  t.equal(channel.closeCode, undefined, 'the socket with its subscriptions is open')
}

async function goesOn(t: Test, k: TestKernel, held: Held, channel: string, word: string): Promise<void> {
  await hears(k, held.channel, channel, word)
  held.socket.send(word)
  t.match(await held.socket.next(({ data }) => data === word, limitMs), { event: 'said' })
}

test('what is open ends with the credential it was opened with, in any process, and others of the user go on', async t => {
  const k = await createTestKernel({ inline: [live] })
  t.teardown(async () => {
    await k.close()
  })
  const two = await createTestKernel({ state: k.state, inline: [live] })
  t.teardown(async () => {
    await two.stop()
  })
  const ann = await k.as.session('ann')
  const { project, channel } = await projectOf(ann)
  const there = (client: TestClient): TestClient => new TestClient(two.url, client.credential)
  const everywhere = async (client: TestClient): Promise<readonly Held[]> => [
    await hold(k, client, project, channel),
    await hold(two, there(client), project, channel)
  ]
  const remains = await hold(two, there(ann), project, channel)

  const leaving = await signIn(k, 'ann')
  const left = await everywhere(leaving)
  t.equal((await leaving.post('/api/auth/logout')).status, 200)
  for (const held of left) await hasEnded(t, held)
  await goesOn(t, two, remains, channel, 'logout')

  const token = await ann.post('/api/tokens', { name: 'ci', scopes: ['read'] })
  const removed = await everywhere(
    new TestClient(k.url, { authorization: `Bearer ${token.body.token as string}` })
  )
  t.equal((await ann.delete(`/api/tokens/${token.body.id as string}`)).status, 200)
  for (const held of removed) await hasEndedButForChannels(t, held)
  for (const [at, held] of removed.entries())
    await hears([k, two][at] as TestKernel, held.channel, channel, 'a token that was revoked')
  await goesOn(t, two, remains, channel, 'token')

  const refreshing = await signIn(k, 'ann')
  const refreshed = await everywhere(refreshing)
  t.equal((await refreshing.post('/api/auth/refresh')).status, 200)
  t.equal((await refreshing.get('/api/auth/me')).status, 401, 'the secret from before')
  await goesOn(t, k, refreshed[0] as Held, channel, 'refresh')

  const { password } = await k.user('ann')
  const changed = await ann.put('/api/auth/password', {
    current_password: password,
    new_password: 'another long password'
  })
  t.equal(changed.status, 200)
  for (const held of refreshed) await hasEnded(t, held)
})

test('who gets another role keeps their sockets on /api/ws, by session and by token, until the account goes', async t => {
  const k = await createTestKernel({ inline: [live] })
  t.teardown(async () => {
    await k.close()
  })
  const admin = await k.as.session()
  const { id } = await k.user('ben')
  const promoted = await admin.put(`/api/users/${id}/role`, { role: 'admin' })
  t.equal(promoted.status, 200, JSON.stringify(promoted.body))
  const { project, channel } = await projectOf(admin)
  const ben = await signIn(k, 'ben')
  const issued = await ben.post('/api/tokens', { name: 'ci', scopes: ['read'] })
  const token = new TestClient(k.url, { authorization: `Bearer ${issued.body.token as string}` })
  const all = [await hold(k, ben, project, channel), await hold(k, token, project, channel)]
  t.equal((await admin.put(`/api/users/${id}/role`, { role: 'member' })).status, 200)
  for (const held of all) await hasEndedButForChannels(t, held)
  for (const held of all) await hears(k, held.channel, channel, 'demoted')
  t.match(await k.as.anonymous().get('/api/auth/me'), { status: 401 })
  t.equal((await ben.get('/api/auth/me')).status, 401, 'the session itself has ended')
  t.equal((await admin.delete(`/api/users/${id}`)).status, 200)
  for (const { channel: socket } of all) t.equal(await socket.closed(limitMs), 1008, 'the account has gone')
})

test('what is open ends when identity comes back with rules that give fewer rights, and tokens go on', async t => {
  const k = await createTestKernel({ inline: [live], clock: testClock() })
  t.teardown(async () => {
    await k.close()
  })
  const [admin, ann] = [await k.as.session(), await k.as.session('ann')]
  const { project, channel } = await projectOf(ann)
  const token = await k.as.token('read', { user: 'ann' })
  const [session, remains] = [await hold(k, ann, project, channel), await hold(k, token, project, channel)]
  t.equal((await admin.put('/api/plugins/identity/config', { two_factor: 'everyone' })).status, 200)
  await hasEnded(t, session)
  await goesOn(t, k, remains, channel, 'second')
})

test('what is open ends when its session can no longer be refreshed', async t => {
  const clock = testClock()
  // 7.2 and 18 seconds.
  const environment = { JWT_EXPIRY_HOURS: '0.002', JWT_REFRESH_HOURS: '0.005' }
  const k = await createTestKernel({ inline: [live], clock, environment })
  t.teardown(async () => {
    await k.close()
  })
  const ann = await k.as.session('ann')
  const { project, channel } = await projectOf(ann)
  const token = await k.as.token('read', { user: 'ann' })
  const [session, lasting] = [await hold(k, ann, project, channel), await hold(k, token, project, channel)]
  await clock.advance(10_000)
  t.equal((await ann.get('/api/auth/me')).status, 401, 'it waits for its refresh')
  await goesOn(t, k, session, channel, 'second')
  await clock.advance(10_000)
  await hasEnded(t, session)
  await goesOn(t, k, lasting, channel, 'third')
})
