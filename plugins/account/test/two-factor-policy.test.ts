import { createTestKernel, type TestClient } from 'busbar/sdk/testing'
import { generateSync } from 'otplib'
import { test } from 'tap'
import { follow } from './browser.js'

const refused = {
  status: 403,
  body: { code: 'E_SECOND_FACTOR_REQUIRED', error: /asks for two-factor authentication: set it up/ }
}

async function enroll(client: TestClient, password: string) {
  const {
    body: { secret }
  } = await client.post('/api/auth/totp/enroll', { password })
  return await client.post('/api/auth/totp/enroll/verify', { code: generateSync({ secret }) })
}

test('a platform that asks everyone for a second factor opens nothing else before there is one', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { password } = await k.user('admin')
  const token = await k.as.token('read')
  t.match(await admin.put('/api/plugins/identity/config', { two_factor: 'sometimes' }), { status: 400 })
  t.equal((await admin.get('/api/projects')).status, 200)
  t.match(await admin.put('/api/plugins/identity/config', { two_factor: 'everyone' }), {
    status: 200,
    body: { state: 'running' }
  })

  t.match(await admin.get('/api/projects'), refused, 'at once, for sessions that were there before')
  for (const [method, path] of [
    ['GET', 'projects'],
    ['GET', 'auth/sessions'],
    ['PUT', 'auth/password'],
    ['POST', 'tokens'],
    ['GET', 'users'],
    ['PUT', 'plugins/identity/config']
  ] as const) {
    t.match(await admin.send(method, `/api/${path}`, { body: {} }), refused, `${method} ${path}`)
  }
  for (const path of ['auth/me', 'auth/totp']) t.equal((await admin.get(`/api/${path}`)).status, 200, path)
  t.equal((await k.as.anonymous().get('/api/features')).status, 200)
  t.equal((await token.get('/api/projects')).status, 200, 'a token has no second factor to show')
  await t.rejects(k.socket(admin), { message: /403/ })

  const verified = await enroll(admin, password)
  t.equal(verified.status, 200)
  const browser = follow(k, verified)
  t.equal((await browser.get('/api/projects')).status, 200)
  const [code] = verified.body.recovery_codes as string[]
  const without = follow(
    k,
    await browser.post('/api/auth/totp/disable', { password, code, method: 'recovery_code' })
  )
  t.match(await without.get('/api/projects'), refused)
  t.equal((await without.post('/api/auth/logout')).status, 200)
})

test('it can ask admins only, and nobody unless it is told to', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const member = await k.as.session('member')
  t.equal((await member.get('/api/projects')).status, 200)
  const browser = follow(k, await enroll(admin, (await k.user('admin')).password))
  t.equal((await browser.put('/api/plugins/identity/config', { two_factor: 'admins' })).status, 200)
  t.equal((await member.get('/api/projects')).status, 200)
  t.equal((await browser.put(`/api/users/${member.userId ?? ''}/role`, { role: 'admin' })).status, 200)
  const { email, password } = await k.user('member')
  const promoted = follow(k, await k.as.anonymous().post('/api/auth/login', { email, password }))
  t.match(await promoted.get('/api/projects'), refused)
  t.equal((await browser.put('/api/plugins/identity/config', {})).status, 200)
  t.equal((await promoted.get('/api/projects')).status, 200)
})
