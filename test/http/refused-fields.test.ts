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
