import { createTestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { cookiesOf, follow } from './browser.js'

const limits = [
  ['POST', '/api/auth/setup', 10],
  ['POST', '/api/auth/login', 5],
  ['POST', '/api/auth/login/verify', 5],
  ['POST', '/api/auth/refresh', 30],
  ['POST', '/api/auth/forgot-password', 3],
  ['POST', '/api/auth/reset-password', 10],
  ['GET', '/api/auth/invitation', 30],
  ['POST', '/api/auth/accept-invitation', 10]
] as const

test('each public operation has the budget of the contract for an address, and says so in plain text when it is spent', async t => {
  // A clock that stands: no window ends while its budget is spent.
  const k = await createTestKernel({ clock: testClock() })
  t.teardown(() => k.close())
  await k.user('admin')
  const anyone = k.as.anonymous()
  for (const [method, path, budget] of limits) {
    for (let n = 1; n <= budget; n++) {
      const { status, headers } = await anyone.send(method, path, {
        body: method === 'POST' ? {} : undefined
      })
      t.not(status, 429)
      t.match(
        headers,
        { 'x-ratelimit-limit': String(budget), 'x-ratelimit-remaining': String(budget - n) },
        `${path} ${n}`
      )
    }
    const spent = await anyone.send(method, path, { body: method === 'POST' ? {} : undefined })
    t.equal(spent.status, 429, path)
    t.type(spent.body, 'string')
    t.match(spent.headers, {
      'content-type': /^text\/plain/,
      'x-ratelimit-remaining': '0',
      'retry-after': /^\d+$/
    })
  }
  for (const path of ['/api/auth/setup', '/api/features'])
    t.notOk('x-ratelimit-limit' in (await anyone.get(path)).headers, `${path} has none`)
})

test('an admin makes, invites and resets ten times a minute', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  for (const [method, path] of [
    ['POST', '/api/users'],
    ['POST', '/api/users/invite'],
    ['PUT', `/api/users/${admin.userId ?? ''}/password`]
  ] as const) {
    t.equal((await admin.send(method, path, { body: {} })).headers['x-ratelimit-limit'], '10', path)
  }
})

test('the cookies are sent over TLS alone as soon as the platform is reached that way', async t => {
  const names = ['csrf_token', 'refresh_token', 'token']
  for (const [environment, headers, isSecure] of [
    [{ SECURE_COOKIES: 'true' }, {}, true],
    [{ TRUST_PROXY: '127.0.0.1' }, { 'x-forwarded-proto': 'https' }, true],
    [{}, { 'x-forwarded-proto': 'https' }, false]
  ] as const) {
    const k = await createTestKernel({ environment })
    t.teardown(() => k.close())
    const { email, password } = await k.user('admin')
    const login = await k.as.anonymous().post('/api/auth/login', { email, password }, { headers })
    const logout = await follow(k, login).post('/api/auth/logout', undefined, { headers })
    for (const answer of [login, logout]) {
      const { known_device: device, ...cookies } = cookiesOf(answer)
      t.same(Object.keys(cookies).sort(), names)
      t.equal(
        device?.attributes.includes('Secure'),
        answer === login ? isSecure : undefined,
        'who signs out stays known'
      )
      for (const name of names)
        t.equal(
          cookies[name]?.attributes.includes('Secure'),
          isSecure,
          `${name} ${JSON.stringify(environment)}`
        )
      t.notOk(cookies.csrf_token?.attributes.includes('HttpOnly'), 'the page reads it')
    }
    for (const name of names) t.ok(cookiesOf(logout)[name]?.attributes.includes('Max-Age=0'))
  }
})

test('every way into a session brings a new CSRF token', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { generateSync } = await import('otplib')
  const admin = await k.as.session()
  const { email, password } = await k.user('ann')
  const seen: string[] = []
  const note = (answer: Parameters<typeof cookiesOf>[0]) => {
    const value = cookiesOf(answer).csrf_token?.value ?? ''
    t.match(value, /^[0-9a-f]{64}$/)
    seen.push(value)
    return follow(k, answer)
  }
  let browser = note(await k.as.anonymous().post('/api/auth/login', { email, password }))
  browser = note(await browser.post('/api/auth/refresh'))
  browser = note(
    await browser.put('/api/auth/password', { current_password: password, new_password: password })
  )
  const {
    body: { secret }
  } = await browser.post('/api/auth/totp/enroll', { password })
  const verified = await browser.post('/api/auth/totp/enroll/verify', { code: generateSync({ secret }) })
  note(verified)
  const [first, second] = verified.body.recovery_codes as string[]
  const {
    body: { challenge }
  } = await k.as.anonymous().post('/api/auth/login', { email, password })
  browser = note(
    await k.as.anonymous().post('/api/auth/login/verify', { challenge, code: first, method: 'recovery_code' })
  )
  note(await browser.post('/api/auth/totp/disable', { password, code: second, method: 'recovery_code' }))
  const {
    body: { link }
  } = await admin.post('/api/users/invite', { email: 'eve@example.com' })
  note(
    await k.as
      .anonymous()
      .post('/api/auth/accept-invitation', { token: (link as string).split('=')[1], password })
  )
  t.equal(new Set(seen).size, 7)
})
