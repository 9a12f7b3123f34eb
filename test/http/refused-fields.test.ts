import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a refusal names the field that it is about, whichever plugin refuses', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { id } = (await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })).body
  const long = 'a sentence that is long'
  const refusals: ReadonlyArray<
    readonly [method: 'POST' | 'PUT' | 'GET', path: string, body: object, field: string]
  > = [
    ['POST', '/api/tokens', { name: ' ', scopes: ['read'] }, 'name'],
    ['POST', '/api/tokens', { name: 'ci', scopes: ['root'] }, 'scopes'],
    ['POST', '/api/tokens', { name: 'ci', scopes: ['read'], expires_in_days: 2 }, 'expires_in_days'],
    [
      'POST',
      '/api/tokens',
      { name: 'ci', scopes: ['read'], project_ids: [crypto.randomUUID()] },
      'project_ids'
    ],
    ['POST', '/api/users/invite', { email: 'nobody', role: 'member' }, 'email'],
    ['PUT', '/api/auth/password', { current_password: long, new_password: 'short' }, 'new_password'],
    ['POST', '/api/auth/reset-password', { token: 'none', new_password: 'short' }, 'new_password'],
    ['POST', '/api/auth/reset-password', { token: 'none', new_password: long }, 'token'],
    ['PUT', `/api/projects/${id}/env`, { vars: [{ key: '1A', value: 'x' }] }, 'vars'],
    ['PUT', `/api/projects/${id}/transfer`, { user_id: crypto.randomUUID() }, 'user_id'],
    ['GET', '/api/audit-logs?user_id=x', {}, 'user_id'],
    ['GET', '/api/projects/x', {}, 'projectId'],
    ['GET', '/api/plugins/-', {}, 'pluginId']
  ]
  for (const [method, path, body, field] of refusals) {
    const answer = await admin.send(
      method,
      path,
      method === 'GET' ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    )
    t.match(
      answer,
      { status: 400, body: { field, error: String } },
      `${method} ${path} ${JSON.stringify(body)}`
    )
  }
})

test('a token that asks for what there is not is told what there is', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const refused = async (body: object): Promise<unknown> =>
    (await admin.post('/api/tokens', { name: 'ci', scopes: ['read'], ...body })).body
  t.match(await refused({ scopes: ['root'] }), { remedy: 'the scopes are metrics, read, deploy, write' })
  t.match(await refused({ expires_in_days: 2 }), { remedy: /^use 1, 7, 14, 30, 60, 90, or null/ })
})

test('a value that is taken is named too', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { email } = await k.user('ann')
  const password = 'a sentence that is long'
  for (const [path, body, field] of [
    ['/api/projects', { name: 'Shop', slug: 'shop' }, 'slug'],
    ['/api/users', { email, password, role: 'member' }, 'email'],
    ['/api/users/invite', { email, role: 'member' }, 'email']
  ] as const) {
    await admin.post(path, body)
    t.match(await admin.post(path, body), { status: 409, body: { field } }, path)
  }
})

test('what the platform itself refuses says what helps', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session('admin')
  const member = await k.as.session('member')
  const nobody = k.as.anonymous()
  const reader = await k.as.token('read')
  const { id } = (await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })).body
  await admin.put(`/api/projects/${id}/members`, { email: (await k.user('member')).email, role: 'viewer' })
  const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  const forged = { headers: { 'x-csrf-token': '' } }
  const refusals = [
    [await nobody.get('/api/projects'), 401, /Authorization: Bearer/],
    [await nobody.get('/api/projects', { headers: { authorization: 'Bearer x' } }), 401, /new token/],
    [await admin.post('/api/projects', {}, forged), 403, /X-CSRF-Token/],
    [await reader.post('/api/projects', {}), 403, /^use a token with the scope write$/],
    [await reader.get('/api/tokens'), 403, /sign in/],
    [await member.put(`/api/projects/${id}`, {}), 403, /make you an editor/],
    [await nobody.get('/api/nothing'), 404, /\/api\/docs/],
    [await nobody.get('/api/version/'), 404, /ask for \/api\/version$/],
    [await nobody.send('PATCH', '/api/version'), 405, /^use GET, HEAD$/],
    [await admin.post('/api/projects', 'name=a', form), 415, /application\/json/]
  ] as const
  for (const [answer, status, remedy] of refusals)
    t.match(answer, { status, body: { remedy } }, String(remedy))
  t.match(await admin.post('/api/projects', { name: 'x'.repeat(2 ** 20), slug: 'x' }), {
    status: 413,
    body: { error: /larger than the 1048576 bytes/ }
  })
})
