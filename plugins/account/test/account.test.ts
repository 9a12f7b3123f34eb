import { createTestKernel, testClock } from 'busbar/sdk/testing'
import { generateSync } from 'otplib'
import { test } from 'tap'
import { follow } from './browser.js'

test('the profile keeps what is absent and refuses what cannot be', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const changed = await admin.put('/api/auth/profile', {
    first_name: 'Ada',
    role: 'member',
    email: 'eve@example.com'
  })
  t.match(changed, {
    status: 200,
    body: { username: 'admin', first_name: 'Ada', last_name: '', role: 'admin', email: 'admin@example.com' }
  })
  t.match(await admin.put('/api/auth/profile', { username: '' }), {
    status: 400,
    body: { error: /^username / }
  })
  t.match(await admin.put('/api/auth/profile', { username: 'x'.repeat(65) }), { status: 400 })
  t.match(await admin.put('/api/auth/profile', { last_name: null }), { status: 400 })
  t.match(await admin.put('/api/auth/profile', {}), { status: 200, body: { first_name: 'Ada' } })
})

test('a token reads its owner and changes nothing of the account', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const token = await k.as.token('write')
  t.match(await token.get('/api/auth/me'), { status: 200, body: { email: 'admin@example.com' } })
  t.match(await (await k.as.token('metrics')).get('/api/auth/me'), {
    status: 403,
    body: { error: 'token lacks required scope: read' }
  })
  const error = 'this action requires a session, not a personal access token'
  for (const [method, path] of [
    ['PUT', 'profile'],
    ['PUT', 'password'],
    ['POST', 'logout'],
    ['GET', 'totp'],
    ['POST', 'totp/enroll'],
    ['POST', 'totp/enroll/verify'],
    ['POST', 'totp/disable'],
    ['POST', 'totp/recovery-codes'],
    ['GET', 'sessions']
  ] as const) {
    t.match(
      await token.send(method, `/api/auth/${path}`, { body: {} }),
      { status: 403, body: { error } },
      `${method} ${path}`
    )
  }
})

test('a new password ends the other sessions and renews this one', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { email, password } = await k.user('admin')
  const other = await k.as.session()
  const browser = follow(k, await k.as.anonymous().post('/api/auth/login', { email, password }))
  const wrong = { current_password: 'not it at all', new_password: 'a better one' }
  t.match(await browser.put('/api/auth/password', wrong), {
    status: 401,
    body: { error: 'current password is incorrect' }
  })
  t.match(await browser.put('/api/auth/password', { current_password: password, new_password: 'short' }), {
    status: 400
  })
  const changed = await browser.put('/api/auth/password', {
    current_password: password,
    new_password: 'a better one'
  })
  t.match(changed, { status: 200, body: { status: 'password updated' } })
  t.equal((await browser.get('/api/auth/me')).status, 401)
  t.equal((await other.get('/api/auth/me')).status, 401)
  t.equal((await follow(k, changed).get('/api/auth/me')).status, 200)
})

test("own sessions are listed and ended, and nobody else's", async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { email, password } = await k.user('admin')
  const browser = follow(
    k,
    await k.as
      .anonymous()
      .post('/api/auth/login', { email, password }, { headers: { 'user-agent': 'Firefox' } })
  )
  await k.as.session()
  const member = await k.as.session('member')
  const { body } = await browser.get('/api/auth/sessions')
  t.equal(body.length, 2)
  t.match(
    body.find((row: { current: boolean }) => row.current),
    { user_agent: 'Firefox', ip_address: /127\.0\.0\.1/ }
  )
  t.same(Object.keys(body[0]).sort(), [
    'created_at',
    'current',
    'expires_at',
    'id',
    'ip_address',
    'last_used_at',
    'user_agent'
  ])
  const [memberSession] = (await member.get('/api/auth/sessions')).body
  t.match(await browser.delete(`/api/auth/sessions/${memberSession.id as string}`), {
    status: 404,
    body: { error: 'session not found' }
  })
  const other = body.find((row: { current: boolean }) => !row.current)
  t.match(await browser.delete(`/api/auth/sessions/${other.id as string}`), {
    status: 200,
    body: { status: 'deleted' }
  })
  t.equal((await (await k.as.session()).get('/api/auth/me')).status, 401)
  t.equal((await member.get('/api/auth/me')).status, 200)
})

test('two-factor sign-in from enrolling to disabling', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const { email, password } = await k.user('admin')
  const anyone = k.as.anonymous()
  const codeOf = (secret: string) => generateSync({ secret, epoch: Math.floor(clock.now().getTime() / 1000) })
  let browser = follow(k, await anyone.post('/api/auth/login', { email, password }))
  t.same((await browser.get('/api/auth/totp')).body, {
    enabled: false,
    enabled_at: null,
    recovery_codes_remaining: 0
  })
  const enrolled = await browser.post('/api/auth/totp/enroll', { password })
  t.match(enrolled, {
    status: 200,
    body: {
      secret: /^[A-Z2-7]{32}$/,
      uri: /^otpauth:\/\/totp\/Busbar/,
      qr_code: /^data:image\/png;base64,iVBORw0KGgo/
    }
  })
  t.same(Object.keys(enrolled.body).sort(), ['qr_code', 'secret', 'uri'])
  t.match(await browser.post('/api/auth/totp/enroll/verify', { code: '000000' }), { status: 401 })
  const verified = await browser.post('/api/auth/totp/enroll/verify', { code: codeOf(enrolled.body.secret) })
  t.equal(verified.status, 200)
  t.equal(verified.body.recovery_codes.length, 10)
  t.match(verified.body.session, { user: { email }, expires_in: 3600 })
  browser = follow(k, verified)
  t.match((await browser.get('/api/auth/totp')).body, { enabled: true, recovery_codes_remaining: 10 })

  await clock.advance(60_000)
  const challenge = await anyone.post('/api/auth/login', { email, password })
  t.equal(challenge.status, 200)
  t.same(challenge.body, {
    challenge: challenge.body.challenge,
    methods: ['totp', 'recovery_code'],
    expires_in: 300
  })
  t.notOk(challenge.headers['set-cookie'])
  t.match(
    await anyone.post('/api/auth/login/verify', {
      challenge: challenge.body.challenge,
      code: '1',
      method: 'sms'
    }),
    { status: 400 }
  )
  const login = await anyone.post('/api/auth/login/verify', {
    challenge: challenge.body.challenge,
    code: codeOf(enrolled.body.secret)
  })
  t.match(login, { status: 200, body: { user: { email } } })
  browser = follow(k, login)

  const codes = verified.body.recovery_codes as string[]
  const fresh = await browser.post('/api/auth/totp/recovery-codes', {
    password,
    code: codes[0],
    method: 'recovery_code'
  })
  t.equal(fresh.body.recovery_codes.length, 10)
  const disabled = await browser.post('/api/auth/totp/disable', {
    password,
    code: fresh.body.recovery_codes[0],
    method: 'recovery_code'
  })
  t.match(disabled, { status: 200, body: { status: 'disabled', session: { user: { email } } } })
  t.match((await follow(k, disabled).get('/api/auth/totp')).body, { enabled: false })
})
