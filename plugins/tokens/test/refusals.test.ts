import { randomUUID } from 'node:crypto'
import { createTestKernel, TestClient } from 'busbar/sdk/testing'
import { test } from 'tap'

test('every refusal of a credential has the words of the contract', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const bob = await k.as.session('bob')
  const made = async (slug: string): Promise<string> =>
    (await ann.post('/api/projects', { name: slug, slug })).body.id as string
  const [mine, other] = [await made('mine'), await made('other')]
  const read = await k.as.token('read', { user: 'ann' })
  const pinned = await k.as.token('read', { user: 'ann', pins: [mine] })
  const bearer = (authorization: string) => new TestClient(k.url, { authorization })
  for (const [what, answer, status, error] of [
    ['no credential', await k.as.anonymous().get('/api/projects'), 401, 'unauthorized'],
    [
      'an unknown token',
      await bearer(`Bearer busbar_pat_${'x'.repeat(43)}`).get('/api/projects'),
      401,
      'invalid or expired token'
    ],
    [
      'no token at all',
      await bearer('Bearer nonsense').get('/api/projects'),
      401,
      'invalid or expired token'
    ],
    [
      'a bad token beside a good session',
      await new TestClient(k.url, { ...ann.credential, authorization: 'Bearer nonsense' }).get(
        '/api/projects'
      ),
      401,
      'invalid or expired token'
    ],
    [
      'a scope shortfall',
      await read.put(`/api/projects/${mine}`, { name: 'x' }),
      403,
      'token lacks required scope: write'
    ],
    [
      'another scope shortfall',
      await (await k.as.token('metrics', { user: 'ann' })).get('/api/projects'),
      403,
      'token lacks required scope: read'
    ],
    [
      'outside the pins',
      await pinned.get(`/api/projects/${other}`),
      403,
      'token is pinned to a different project'
    ],
    [
      'outside the pins, and not there',
      await pinned.get(`/api/projects/${randomUUID()}`),
      403,
      'token is pinned to a different project'
    ],
    [
      'a session-only route',
      await read.delete(`/api/projects/${mine}`),
      403,
      'this action requires a session, not a personal access token'
    ],
    [
      'a missing role',
      await ann.get('/api/users'),
      403,
      'forbidden: only users with the role admin may do this'
    ],
    [
      'a missing role, by token',
      await read.get('/api/users'),
      403,
      'forbidden: only users with the role admin may do this'
    ],
    ['no access to the object', await bob.get(`/api/projects/${mine}`), 404, 'not found'],
    ['no such object', await bob.get(`/api/projects/${randomUUID()}`), 404, 'not found']
  ] as const)
    t.match({ status: answer.status, error: answer.body.error }, { status, error }, what)
})

test('a token whose last pinned project is deleted reaches nothing, and is not widened by a new one', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const pinned = await k.as.token('write', { user: 'ann', pins: [project.id] })
  await ann.delete(`/api/projects/${project.id as string}`)
  const { body: next } = await ann.post('/api/projects', { name: 'y', slug: 'y' })
  t.same((await pinned.get('/api/projects')).body, [])
  t.match(await pinned.get(`/api/projects/${next.id as string}`), {
    status: 403,
    body: { error: 'token is pinned to a different project' }
  })
  t.match(await pinned.post('/api/projects', { name: 'z', slug: 'z' }), {
    status: 403,
    body: { error: 'token is pinned to a different project' }
  })
  t.same((await pinned.get('/api/deployments')).body, [])
  t.equal((await pinned.get('/api/auth/me')).status, 200)
})
