import { connect } from 'node:net'
import { createTestKernel, type TestAnswer, type TestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { anonymousAuditPolicy } from '../../../core/audit/anonymous-audit-limit.js'

const ada = { email: 'ada@example.com', password: 'correct horse' }
const printed = /one-time code for it is ((?:[a-z2-9]{5}-){3}[a-z2-9]{5})/

const records = async (k: TestKernel) =>
  await k.query<{
    action: string
    user_email: string | null
    details: { unrecorded?: number }
  }>('select action, user_email, details from kernel.audit_log order by created_at, ctid')

/** The codes that a platform has printed so far, the newest last. */
function watchedLog() {
  const codes: string[] = []
  return {
    codes,
    onLog: (line: string) => {
      codes.push(...[printed.exec(line)?.[1] ?? []].flat())
    }
  }
}

/** All that the platform says to these bytes until it closes the connection. */
async function speak(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(bytes)
  const late = setTimeout(() => {
    socket.destroy()
  }, 10_000)
  let answer = ''
  socket.on('data', chunk => {
    answer += String(chunk)
  })
  await new Promise(resolve => socket.once('close', resolve))
  clearTimeout(late)
  return answer
}

test('a platform that has been set up refuses another set-up unread and unrecorded, and closes the connection', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  await k.user('admin')
  const head = 'POST /api/auth/setup HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  for (const announced of ['Content-Length: 900000', 'Content-Length: 16', 'Transfer-Encoding: chunked']) {
    const answer = await speak(k.port, `${head}${announced}\r\n\r\n`)
    t.match(answer, /^HTTP\/1\.1 409 /, `${announced}: answered before a byte of the body has come`)
    t.match(answer, /connection: close/i)
    t.match(answer, 'E_AUTH_SETUP_COMPLETED')
  }
  t.equal((await k.as.anonymous().post('/api/auth/setup', '{')).status, 409, 'whatever the body is')
  t.same(await records(k), [])
})

test('set-up has a budget of ten a minute for an address', async t => {
  const k = await createTestKernel({ clock: testClock() })
  t.teardown(() => k.close())
  const answers: TestAnswer[] = []
  for (let n = 0; n < 11; n++)
    answers.push(await k.as.anonymous().post('/api/auth/setup', { ...ada, password: 'short' }))
  t.same(
    answers.map(({ status }) => status),
    [...Array<number>(10).fill(400), 429]
  )
  t.match(answers[10]?.headers, { 'retry-after': /^\d+$/ })
})

test('a platform that the network reaches is set up with the one-time code of its log alone', async t => {
  const { codes, onLog } = watchedLog()
  const k = await createTestKernel({ environment: { HOST: '0.0.0.0' }, onLog })
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()
  t.same((await anyone.get('/api/auth/setup')).body, { setup_required: true, code_required: true })
  t.equal(codes.length, 1)
  const [code = ''] = codes
  for (const body of [
    ada,
    { ...ada, code: '' },
    { ...ada, code: code.slice(1) },
    { ...ada, code: `${code}a` },
    { ...ada, code: 'aaaaa-aaaaa-aaaaa-aaaaa' }
  ]) {
    t.match(await anyone.post('/api/auth/setup', body), {
      status: 403,
      body: { code: 'E_SETUP_CODE', error: /its log printed/ }
    })
  }
  t.equal((await anyone.get('/api/auth/setup')).body.setup_required, true)
  t.notMatch(
    JSON.stringify(await k.query('select * from identity.instance')),
    code,
    'only its digest is kept'
  )
  t.equal((await anyone.post('/api/auth/setup', { ...ada, code })).status, 201)
  t.same((await anyone.get('/api/auth/setup')).body, { setup_required: false, code_required: false })
  t.same(await k.query('select key from identity.instance'), [], 'and it is forgotten')
})

test('each start until then prints a new code, and every process takes the newest', async t => {
  const first = watchedLog()
  const one = await createTestKernel({ environment: { HOST: '0.0.0.0' }, onLog: first.onLog })
  t.teardown(() => one.close())
  const second = watchedLog()
  const two = await createTestKernel({
    environment: { HOST: '0.0.0.0' },
    onLog: second.onLog,
    state: one.state
  })
  t.teardown(() => two.stop())
  t.not(first.codes[0], second.codes[0])
  t.equal((await two.as.anonymous().post('/api/auth/setup', { ...ada, code: first.codes[0] })).status, 403)
  t.equal((await one.as.anonymous().post('/api/auth/setup', { ...ada, code: second.codes[0] })).status, 201)
  const third = watchedLog()
  const three = await createTestKernel({
    environment: { HOST: '0.0.0.0' },
    onLog: third.onLog,
    state: one.state
  })
  t.teardown(() => three.stop())
  t.same(third.codes, [], 'a platform that has been set up prints none')
})

test('SETUP_CODE gives the code or turns it off, and is refused when it is too short to be one', async t => {
  const { codes, onLog } = watchedLog()
  const given = await createTestKernel({ environment: { SETUP_CODE: 'a code of the operator' }, onLog })
  t.teardown(() => given.close())
  t.equal((await given.as.anonymous().post('/api/auth/setup', ada)).status, 403, 'on loopback too')
  t.equal(
    (await given.as.anonymous().post('/api/auth/setup', { ...ada, code: 'a code of the operator' })).status,
    201
  )
  t.same(codes, [], 'who gave it knows it')

  const off = await createTestKernel({ environment: { HOST: '0.0.0.0', SETUP_CODE: 'off' } })
  t.teardown(() => off.close())
  t.same((await off.as.anonymous().get('/api/auth/setup')).body, {
    setup_required: true,
    code_required: false
  })
  t.equal(
    (await off.as.anonymous().post('/api/auth/setup', ada, { headers: { host: 'busbar.example.com' } }))
      .status,
    201
  )

  await t.rejects(createTestKernel({ environment: { SETUP_CODE: 'secret' } }), {
    message: /SETUP_CODE cannot be used \(6 characters\); it takes at least 12/
  })
})

test('a proxy in front asks for the code as well: it opens to the network what listens on loopback', async t => {
  const settings: ReadonlyArray<Record<string, string>> = [
    { TRUST_PROXY: '127.0.0.1' },
    { PUBLIC_BASE_URL: 'https://busbar.example.com' }
  ]
  for (const environment of settings) {
    const k = await createTestKernel({ environment })
    t.teardown(() => k.close())
    t.match(
      (await k.as.anonymous().get('/api/auth/setup')).body,
      { code_required: true },
      JSON.stringify(environment)
    )
    t.equal((await k.as.anonymous().post('/api/auth/setup', ada)).status, 403)
  }
})

test('on loopback only a request by a name of this machine sets the platform up', async t => {
  const k = await createTestKernel({ clock: testClock() })
  t.teardown(() => k.close())
  const { port } = k
  const ask = async (headers: Record<string, string>): Promise<TestAnswer> => {
    k.resetRateLimits()
    return await k.as.anonymous().post('/api/auth/setup', { ...ada, password: 'short' }, { headers })
  }
  const strange = [
    'evil.example.com',
    `evil.example.com:${port}`,
    'localhost.evil.com',
    '127.0.0.1.evil.com',
    '10.0.0.1',
    '[::2]',
    '2130706433',
    'localhost.'
  ]
  for (const host of strange)
    t.match(await ask({ host }), { status: 403, body: { code: 'E_SETUP_HOST' } }, host)
  for (const host of ['evil.com@localhost', 'localhost:x'])
    t.match(await ask({ host }), { status: 400, body: { code: 'E_REQUEST_INVALID' } }, host)
  for (const name of ['x-forwarded-for', 'forwarded', 'via'])
    t.equal((await ask({ [name]: '203.0.113.9' })).status, 403, name)
  for (const host of [
    `localhost:${port}`,
    'LOCALHOST',
    `127.0.0.1:${port}`,
    '127.1.2.3',
    '[::1]',
    `[::1]:${port}`,
    'busbar.localhost'
  ]) {
    t.match(await ask({ host }), { status: 400, body: { code: 'E_USER_PASSWORD' } }, host)
  }
})

test('attempts of anonymous callers fill neither the audit log nor put text of their choice into it', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  await k.user('admin')
  const anyone = k.as.anonymous()
  const attempts = [
    ['/api/auth/login', { email: 'anybody@example.com', password: 'not it at all' }],
    ['/api/auth/login/verify', { challenge: 'none', code: '123456' }],
    ['/api/auth/forgot-password', { email: 'anybody@example.com' }],
    ['/api/auth/reset-password', { token: 'none', new_password: 'long enough' }],
    ['/api/auth/accept-invitation', { token: 'none', password: 'long enough' }],
    ['/api/webhooks/deploy/none', undefined]
  ] as const
  await anyone.post('/api/auth/login', { email: 'buy at https://spam.example.com', password: 'x' })
  t.equal((await records(k))[0]?.user_email, null, 'what is no address is not kept')
  for (let n = 1; n < anonymousAuditPolicy.perAddress + 12; n++) {
    const [path, body] = attempts[n % attempts.length] ?? attempts[0]
    k.resetRateLimits()
    const { status } = await anyone.post(path, body)
    t.not(status, 500)
  }
  t.equal((await records(k)).length, anonymousAuditPolicy.perAddress)
  await clock.advance(3_600_001)
  await anyone.post('/api/auth/login', { email: 'anybody@example.com', password: 'not it at all' })
  const all = await records(k)
  t.equal(all.length, anonymousAuditPolicy.perAddress + 1)
  t.equal(all.at(-1)?.details.unrecorded, 12, 'the next record says how many were left out')
})
