import { randomUUID } from 'node:crypto'
import { createTestKernel, TestClient } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a token is told once, listed without its value, and deleted', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const created = await admin.post('/api/tokens', {
    name: ' ci ',
    scopes: ['metrics', 'deploy'],
    expires_in_days: 7
  })
  t.equal(created.status, 201)
  const { token, ...row } = created.body
  t.match(token, /^busbar_pat_[\w-]{43}$/)
  t.match(row, { name: 'ci', scopes: ['deploy'], role_at_issue: 'admin', pinned: false, project_ids: [] })
  t.equal(Date.parse(row.expires_at) - Date.parse(row.created_at), 7 * 86_400_000)
  t.notOk('last_used_at' in created.body)

  const client = new TestClient(k.url, { authorization: `Bearer ${token as string}` })
  t.equal((await client.get('/api/auth/me')).status, 200)
  const listed = await admin.get('/api/tokens')
  t.equal(listed.headers['x-total-count'], '1')
  t.same(Object.keys(listed.body[0]).sort(), [
    'created_at',
    'expires_at',
    'id',
    'last_used_at',
    'name',
    'pinned',
    'project_ids',
    'role_at_issue',
    'scopes'
  ])
  t.match(listed.body, [{ ...row, expires_at: row.expires_at }])

  const member = await k.as.session('member')
  t.same((await member.get('/api/tokens')).body, [], "nobody sees another's")
  t.match(await member.delete(`/api/tokens/${row.id as string}`), {
    status: 404,
    body: { error: 'token not found' }
  })
  t.match(await admin.delete('/api/tokens/nonsense'), { status: 400 })
  t.match(await admin.delete(`/api/tokens/${row.id as string}`), { status: 200, body: { status: 'deleted' } })
  t.match(await admin.delete(`/api/tokens/${row.id as string}`), { status: 404 })
  t.match(await client.get('/api/auth/me'), { status: 401, body: { error: 'invalid or expired token' } })
})

test('what cannot be is refused with its own sentence', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const good = { name: 'ci', scopes: ['read'] }
  for (const [body, error] of [
    [{ scopes: ['read'] }, 'name is required'],
    [{ ...good, name: '  ' }, 'name must not be empty'],
    [{ name: 'ci' }, 'select at least one valid scope'],
    [{ ...good, scopes: ['read', 'root'] }, 'select at least one valid scope'],
    [{ ...good, expires_in_days: 5 }, 'invalid expires_in_days'],
    [{ ...good, project_ids: ['nonsense'] }, /^project_ids/],
    [{ ...good, project_ids: [randomUUID()] }, /^project [\w-]{36} in project_ids does not exist/]
  ] as const) {
    t.match(await admin.post('/api/tokens', body), { status: 400, body: { error } }, JSON.stringify(body))
  }
  t.same((await admin.get('/api/tokens')).body, [])
  for (const body of [
    good,
    { ...good, project_ids: null, expires_in_days: null },
    { ...good, project_ids: [] }
  ]) {
    t.match(await admin.post('/api/tokens', body), { status: 201, body: { pinned: false, expires_at: null } })
  }
})

test('no token makes, sees or ends tokens', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const token = await k.as.token('write')
  const error = 'this action requires a session, not a personal access token'
  t.match(await token.get('/api/tokens'), { status: 403, body: { error } })
  t.match(await token.post('/api/tokens', { name: 'x', scopes: ['read'] }), { status: 403, body: { error } })
  t.match(await token.delete(`/api/tokens/${randomUUID()}`), { status: 403, body: { error } })
})

test('a pinned token reaches its projects only, and only reachable ones can be pinned', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const member = await k.as.session('member')
  const mine = (await member.post('/api/projects', { name: 'Mine', slug: 'mine' })).body.id as string
  const other = (await member.post('/api/projects', { name: 'Other', slug: 'other' })).body.id as string
  const admins = (await admin.post('/api/projects', { name: 'Admins', slug: 'admins' })).body.id as string
  t.match(await member.post('/api/tokens', { name: 'x', scopes: ['read'], project_ids: [mine, admins] }), {
    status: 400,
    body: { error: `project ${admins} in project_ids does not exist or is not yours to reach` }
  })
  const pinned = await k.as.token('read', { user: 'member', pins: [mine, mine] })
  t.match((await member.get('/api/tokens')).body, [{ pinned: true, project_ids: [mine] }])
  t.equal((await pinned.get(`/api/projects/${mine}`)).status, 200)
  t.match(await pinned.get(`/api/projects/${other}`), {
    status: 403,
    body: { error: 'token is pinned to a different project' }
  })
  t.match(
    (await pinned.get('/api/projects')).body.map(({ id }: { id: string }) => id),
    [mine]
  )
  t.equal((await pinned.get('/api/auth/me')).status, 200)
})

test('a deleted project leaves the pins, and the token reaches nothing', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const id = (await admin.post('/api/projects', { name: 'Gone', slug: 'gone' })).body.id as string
  await admin.post('/api/projects', { name: 'Stays', slug: 'stays' })
  const pinned = await k.as.token('read', { pins: [id] })
  t.equal((await pinned.get('/api/projects')).body.length, 1)
  t.equal((await admin.delete(`/api/projects/${id}`)).status, 200)
  t.match((await admin.get('/api/tokens')).body, [{ pinned: true, project_ids: [] }])
  t.same((await pinned.get('/api/projects')).body, [])
  t.equal((await pinned.get(`/api/projects/${id}`)).status, 403)
  t.equal((await pinned.get('/api/auth/me')).status, 200)
})

test('a revoked token stops working at once while it is in use', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const {
    body: { id, token }
  } = await admin.post('/api/tokens', { name: 'ci', scopes: ['read'] })
  const client = new TestClient(k.url, { authorization: `Bearer ${token as string}` })
  let deletedAt = Infinity
  const seen: Array<{ startedAt: number; status: number }> = []
  const load = Array.from({ length: 4 }, async () => {
    for (let i = 0; i < 15; i++) {
      const startedAt = performance.now()
      const { status } = await client.get('/api/auth/me')
      seen.push({ startedAt, status })
    }
  })
  await new Promise(resolve => setTimeout(resolve, 20))
  await admin.delete(`/api/tokens/${id as string}`)
  deletedAt = performance.now()
  await Promise.all(load)
  t.ok(seen.some(({ status }) => status === 200))
  t.equal((await client.get('/api/auth/me')).status, 401)
  t.same(
    seen.filter(({ startedAt, status }) => startedAt > deletedAt && status !== 401),
    []
  )
})
