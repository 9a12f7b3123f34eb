import { identity } from 'busbar/api/identity'
import { createTestKernel, TestClient, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { cookiesOf, follow } from './browser.js'

const ada = { email: 'ada@example.com', password: 'correct horse' }

test('a new platform is set up once, then signed in to', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()
  t.same((await anyone.get('/api/auth/setup')).body, { setup_required: true, code_required: false })

  const both = await Promise.all(
    [1, 2].map(
      async () => await anyone.post('/api/auth/setup', { ...ada, username: 'ada', instance_name: 'Mill' })
    )
  )
  t.same(both.map(({ status }) => status).sort(), [201, 409])
  const created = both.find(({ status }) => status === 201)?.body
  t.same(created, { id: created.id, email: ada.email, role: 'admin', username: 'ada' })
  t.match(both.find(({ status }) => status === 409)?.body, {
    error: 'setup already completed',
    code: 'E_AUTH_SETUP_COMPLETED'
  })
  t.notOk(
    both.some(({ headers }) => headers['set-cookie']),
    'setup signs nobody in'
  )
  t.same((await anyone.get('/api/auth/setup')).body, { setup_required: false, code_required: false })
  t.equal(await k.service(identity).instanceName(), 'Mill')

  const login = await anyone.post('/api/auth/login', ada)
  t.equal(login.status, 200)
  t.same(Object.keys(login.body).sort(), ['expires_in', 'refresh_token', 'token', 'user'])
  t.same(login.body.user, {
    id: created.id,
    email: ada.email,
    role: 'admin',
    username: 'ada',
    first_name: '',
    last_name: ''
  })
  const cookies = cookiesOf(login)
  t.same(cookies.token, {
    value: login.body.token,
    attributes: ['Path=/', 'Max-Age=3600', 'SameSite=Lax', 'HttpOnly']
  })
  t.same(cookies.refresh_token, {
    value: login.body.refresh_token,
    attributes: ['Path=/api/auth', 'Max-Age=604800', 'SameSite=Lax', 'HttpOnly']
  })
  t.same(cookies.csrf_token?.attributes, ['Path=/', 'Max-Age=604800', 'SameSite=Lax'])

  const browser = follow(k, login)
  const me = await browser.get('/api/auth/me')
  t.same(me.body, {
    id: created.id,
    username: 'ada',
    email: ada.email,
    first_name: '',
    last_name: '',
    role: 'admin',
    created_at: me.body.created_at
  })
  t.match(me.body.created_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)

  const audit = await k.query<{ action: string; resource_id: string }>(
    'select action, resource_id from kernel.audit_log order by created_at'
  )
  t.match(
    audit.filter(({ action }) => action === 'login'),
    [{ resource_id: created.id }]
  )
})

test('bodies without what is needed are 400 and name it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()
  for (const [path, body, error] of [
    ['login', {}, 'email is required'],
    ['login', { email: ada.email }, 'password is required'],
    ['login', { email: 1, password: 'x' }, 'email must be a string'],
    ['login', { email: null, password: 'x' }, 'email must be a string'],
    ['setup', { email: ada.email }, 'password is required'],
    ['setup', { email: 'nobody', password: 'long enough' }, 'email is not a valid address'],
    ['setup', { ...ada, password: 'short' }, 'password must have at least 8 characters']
  ] as const) {
    const answer = await anyone.post(`/api/auth/${path}`, body)
    t.match(answer, { status: 400, body: { error } }, `${path} ${JSON.stringify(body)}`)
    k.resetRateLimits()
  }
})

test('five failures lock, and a sixth request in a minute is limited', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const { email, password } = await k.user('admin')
  const anyone = k.as.anonymous()
  for (let i = 0; i < 4; i++) {
    t.match(await anyone.post('/api/auth/login', { email, password: 'not it at all' }), {
      status: 401,
      body: { error: 'invalid email or password', code: 'E_AUTH_CREDENTIALS' }
    })
  }
  const locked = await anyone.post('/api/auth/login', { email, password: 'not it at all' })
  t.match(locked, {
    status: 429,
    headers: { 'retry-after': '900' },
    body: { code: 'E_AUTH_LOCKED', retry_after: 900 }
  })
  const limited = await anyone.post('/api/auth/login', { email, password })
  t.equal(limited.status, 429)
  t.type(limited.body, 'string', 'a rate limit answers in plain text')
  await clock.advance(900_000)
  t.equal((await anyone.post('/api/auth/login', { email, password })).status, 200)
})

test('a session needs its CSRF token to change something, and a refresh too', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { email, password } = await k.user('admin')
  const login = await k.as.anonymous().post('/api/auth/login', { email, password })
  const browser = follow(k, login)
  const cookieOnly = new TestClient(k.url, { cookie: browser.credential.cookie ?? '' })
  t.equal((await cookieOnly.get('/api/auth/me')).status, 200)
  for (const path of ['logout', 'refresh']) {
    t.match(await cookieOnly.post(`/api/auth/${path}`), {
      status: 403,
      body: { error: 'missing csrf token', code: 'E_CSRF' }
    })
    t.match(await cookieOnly.post(`/api/auth/${path}`, undefined, { headers: { 'x-csrf-token': 'wrong' } }), {
      status: 403,
      body: { error: 'invalid csrf token' }
    })
  }

  const refreshed = await browser.post('/api/auth/refresh')
  t.equal(refreshed.status, 200)
  t.not(refreshed.body.token, login.body.token)
  t.equal((await browser.get('/api/auth/me')).status, 401, 'the old secret has ended')
  const renewed = follow(k, refreshed)
  t.equal((await renewed.get('/api/auth/me')).status, 200)

  const replayed = await browser.post('/api/auth/refresh')
  t.match(replayed, { status: 401, body: { code: 'E_AUTH_REFRESH' } })
  for (const name of ['token', 'refresh_token', 'csrf_token']) {
    const cookie = cookiesOf(replayed)[name]
    t.equal(cookie?.value, '', name)
    t.ok(cookie?.attributes.includes('Max-Age=0'), name)
  }
  t.equal((await renewed.get('/api/auth/me')).status, 401, 'and with it the whole session')
})

test('a logout ends this session only', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { email, password } = await k.user('admin')
  const [one, two] = [
    await k.as.anonymous().post('/api/auth/login', { email, password }),
    await k.as.anonymous().post('/api/auth/login', { email, password })
  ]
  const browser = follow(k, one)
  const answer = await browser.post('/api/auth/logout')
  t.match(answer, { status: 200, body: { status: 'logged out' } })
  t.match(Object.keys(cookiesOf(answer)).sort(), ['csrf_token', 'refresh_token', 'token'])
  t.equal((await browser.get('/api/auth/me')).status, 401)
  t.equal((await browser.post('/api/auth/refresh')).status, 401)
  t.equal((await follow(k, two).get('/api/auth/me')).status, 200)
})

test('a database that is away is not a bad credential', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const token = await k.as.token('read')
  await k.query('alter table identity.access_token rename to away')
  const answer = await token.get('/api/auth/me')
  t.equal(answer.status, 500)
  t.notMatch(JSON.stringify(answer.body), /access_token|relation/, 'and says nothing of the inside')
  await k.query('alter table identity.away rename to access_token')
  t.equal((await token.get('/api/auth/me')).status, 200)
})
