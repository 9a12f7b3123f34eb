import { createTestKernel, TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a revoked token and an ended session stop working in another process within a second', async t => {
  const one = await createTestKernel()
  t.teardown(() => one.close())
  const two = await createTestKernel({ state: one.state })
  t.teardown(() => two.stop())
  const admin = await one.as.session()
  const member = await one.as.session('member')
  const {
    body: { id, token }
  } = await admin.post('/api/tokens', { name: 'ci', scopes: ['read'] })
  const there = new TestClient(two.url, { authorization: `Bearer ${token as string}` })
  const memberThere = new TestClient(two.url, member.credential)
  t.equal((await there.get('/api/auth/me')).status, 200)
  t.equal((await memberThere.get('/api/auth/me')).status, 200)

  await admin.delete(`/api/tokens/${id as string}`)
  await member.post('/api/auth/logout')
  const ended = performance.now()
  for (const client of [there, memberThere]) {
    t.ok(await until(async () => (await client.get('/api/auth/me')).status === 401, 'it is refused'))
  }
  t.comment(`${Math.round(performance.now() - ended)} ms until both were refused`)
})
