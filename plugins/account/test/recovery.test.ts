import { setTimeout as sleep } from 'node:timers/promises'
import {
  createTestKernel,
  type TestAnswer,
  type TestKernel,
  type TestKernelOptions
} from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { statementsOf } from '../../../lab/statements.js'
import { type MailSink, mailSink, secretIn } from '../../mail/test/mail-sink.js'

const next = 'a new password'
const forgot = '/api/auth/forgot-password'
const reset = '/api/auth/reset-password'

async function platform(
  t: Test,
  options: TestKernelOptions = {}
): Promise<{ k: TestKernel; sink: MailSink }> {
  const sink = await mailSink(t)
  const k = await createTestKernel({
    ...options,
    environment: { ...sink.environment, ...options.environment }
  })
  t.teardown(() => k.close())
  return { k, sink }
}

const fresh = (k: TestKernel): void => {
  k.resetRateLimits()
}

/** Waits until no job is left, so that what was not sent never will be. */
async function idle(k: TestKernel): Promise<void> {
  for (let n = 0; n < 600; n++) {
    const jobs = await k.query('select 1 from graphile_worker._private_jobs where attempts < max_attempts')
    if (jobs.length === 0) return
    await sleep(50)
  }
  throw new Error('there are still jobs')
}

test('a forgotten password is reset with the link of a mail, which ends sessions and tokens', async t => {
  const lines: string[] = []
  const { k, sink } = await platform(t, { onLog: line => lines.push(line) })
  const anyone = k.as.anonymous()
  const { id, email, password } = await k.user('ann')
  const session = await k.as.session('ann')
  const token = await k.as.token('read', { user: 'ann' })
  t.match(await anyone.post(forgot, { email: ' ANN@example.com ' }), {
    status: 200,
    body: { status: /on its way/ }
  })
  const mail = await sink.next(email)
  t.match(mail.text, /https:\/\/busbar\.example\.com\/reset-password\?token=[0-9a-f]{64}\r?\n/)
  const secret = secretIn(mail)
  t.equal((await session.get('/api/auth/me')).status, 200, 'asking alone ends nothing')

  t.match(await anyone.post(reset, { token: secret, new_password: 'short' }), {
    status: 400,
    body: { code: 'E_USER_PASSWORD' }
  })
  const done = await anyone.post(reset, { token: secret, new_password: next })
  t.match(done, { status: 200 })
  t.same(done.body, { status: 'password updated' })
  t.notOk(done.headers['set-cookie'], 'it signs nobody in')
  t.equal((await session.get('/api/auth/me')).status, 401)
  t.equal((await token.get('/api/auth/me')).status, 401)
  t.equal((await anyone.post('/api/auth/login', { email, password })).status, 401)
  t.equal((await anyone.post('/api/auth/login', { email, password: next })).status, 200)
  t.match(await anyone.post(reset, { token: secret, new_password: next }), {
    status: 400,
    body: { error: 'reset token has already been used' }
  })
  t.match(await anyone.post(reset, { token: 'f'.repeat(64), new_password: next }), {
    status: 400,
    body: { error: 'invalid or expired reset token' }
  })

  const stored = JSON.stringify(await k.query('select * from identity.password_reset'))
  t.notMatch(stored, secret, 'only a digest of it is stored')
  t.notMatch(lines.join('\n'), secret, 'and no log line holds it')
  const audit = await k.query<{
    action: string
    resource_id: string | null
    details: { outcome: string }
  }>(
    "select action, resource_id, details from kernel.audit_log where action like 'password_reset%' order by created_at"
  )
  t.match(
    audit.map(({ action, resource_id, details }) => [action, resource_id, details.outcome]),
    [
      ['password_reset_requested', null, 'success'],
      ['password_reset_completed', null, 'failure'],
      ['password_reset_completed', id, 'success'],
      ['password_reset_completed', null, 'failure'],
      ['password_reset_completed', null, 'failure']
    ]
  )
})

test('a known and an unknown address get the same answer after the same work', async t => {
  const { k, sink } = await platform(t)
  await k.user('ann')
  const anyone = k.as.anonymous()
  // The job that looks the address up works apart from the request: here only what the request sends is counted.
  await k.holdJobs('account')
  const ask = async (email: string) => {
    fresh(k)
    let answer: TestAnswer | undefined
    const statements = await statementsOf(async () => {
      answer = await anyone.post(forgot, { email })
    })
    const { date: _, 'x-request-id': _id, 'x-ratelimit-reset': _reset, ...same } = answer?.headers ?? {}
    return {
      status: answer?.status,
      body: answer?.body,
      headers: same,
      statements: statements.filter(text => /add_jobs|identity\.|audit_log/.test(text))
    }
  }
  await ask('warm@example.com')
  const known = await ask('ann@example.com')
  const unknown = await ask('eve@example.com')
  t.same(known, unknown)
  t.equal(known.status, 200)
  t.equal(known.statements.length, 2, `a job and an audit record: ${known.statements.join(' | ')}`)
  t.same(sink.box, [])
})

test('an address nobody has gets no mail, and neither does nonsense', async t => {
  const { k, sink } = await platform(t)
  await k.user('ann')
  for (const email of ['eve@example.com', 'nonsense', '', 'ann@example.com\r\nBcc: eve@example.com']) {
    fresh(k)
    t.equal((await k.as.anonymous().post(forgot, { email })).status, 200, JSON.stringify(email))
  }
  await idle(k)
  t.equal(sink.offered, 0)
  t.match(await k.as.anonymous().post(forgot, {}), { status: 400, body: { error: 'email is required' } })
})

test('a newer link takes the place of the one before, and one that has expired is told apart', async t => {
  const { k, sink } = await platform(t)
  const anyone = k.as.anonymous()
  const { email } = await k.user('ann')
  const linkOf = async (after: number): Promise<string> => {
    await anyone.post(forgot, { email })
    return secretIn(await sink.next(email, after))
  }
  const first = await linkOf(0)
  const second = await linkOf(1)
  t.match(await anyone.post(reset, { token: first, new_password: next }), {
    status: 400,
    body: { error: 'invalid or expired reset token' }
  })
  await k.query('update identity.password_reset set expires_at = now()')
  t.match(await anyone.post(reset, { token: second, new_password: next }), {
    status: 400,
    body: { error: 'reset token has expired' }
  })
})

test('a link dies with any other change of the password', async t => {
  const { k, sink } = await platform(t)
  const anyone = k.as.anonymous()
  const { id, email } = await k.user('ann')
  const admin = await k.as.session()
  await anyone.post(forgot, { email })
  const secret = secretIn(await sink.next(email))
  const { password: current_password } = await k.user('admin')
  t.equal(
    (await admin.put(`/api/users/${id}/password`, { password: 'set by admin', current_password })).status,
    200
  )
  t.match(await anyone.post(reset, { token: secret, new_password: next }), {
    status: 400,
    body: { code: 'E_PASSWORD_RESET' }
  })
})

test('of many who use a link at the same time one succeeds', async t => {
  const { k, sink } = await platform(t)
  const anyone = k.as.anonymous()
  const { email } = await k.user('ann')
  await anyone.post(forgot, { email })
  const secret = secretIn(await sink.next(email))
  const answers = await Promise.all(
    Array.from({ length: 8 }, async (_, n) => ({
      n,
      ...(await anyone.post(reset, { token: secret, new_password: `password ${n}` }))
    }))
  )
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array<number>(7).fill(400)])
  t.match(
    answers.filter(({ status }) => status === 400).map(({ body }) => body.code),
    Array(7).fill('E_PASSWORD_RESET_USED')
  )
  const winner = answers.find(({ status }) => status === 200)?.n ?? -1
  t.equal((await anyone.post('/api/auth/login', { email, password: `password ${winner}` })).status, 200)
})

test('an address is sent three links an hour, whoever asks, and a client may ask three times an hour', async t => {
  const { k, sink } = await platform(t, { environment: { TRUST_PROXY: '127.0.0.1' } })
  const anyone = k.as.anonymous()
  const { email } = await k.user('ann')
  const ask = async (ip: string) =>
    (await anyone.post(forgot, { email }, { headers: { 'x-forwarded-for': ip } })).status
  for (let n = 0; n < 5; n++) {
    t.equal(await ask(`203.0.113.${n}`), 200, 'it is silent about it')
    await idle(k)
  }
  t.equal(sink.box.length, 3)
  t.same([await ask('203.0.113.0'), await ask('203.0.113.0'), await ask('203.0.113.0')], [200, 200, 429])
})

test('who locked themselves out signs in after the reset', async t => {
  const { k, sink } = await platform(t)
  const anyone = k.as.anonymous()
  const { email } = await k.user('ann')
  for (let n = 0; n < 5; n++) await anyone.post('/api/auth/login', { email, password: 'not it at all' })
  fresh(k)
  t.match(await anyone.post('/api/auth/login', { email, password: 'not it at all' }), {
    status: 429,
    body: { code: 'E_AUTH_LOCKED' }
  })
  await anyone.post(forgot, { email })
  t.equal(
    (await anyone.post(reset, { token: secretIn(await sink.next(email)), new_password: next })).status,
    200
  )
  t.equal((await anyone.post('/api/auth/login', { email, password: next })).status, 200)
})

test('a reset asks for the second factor at the next login all the same', async t => {
  const { k, sink } = await platform(t)
  const anyone = k.as.anonymous()
  const { email, password } = await k.user('ann')
  const session = await k.as.session('ann')
  const { generateSync } = await import('otplib')
  const {
    body: { secret }
  } = await session.post('/api/auth/totp/enroll', { password })
  t.equal(
    (await session.post('/api/auth/totp/enroll/verify', { code: generateSync({ secret }) })).status,
    200
  )
  await anyone.post(forgot, { email })
  await anyone.post(reset, { token: secretIn(await sink.next(email)), new_password: next })
  t.match((await anyone.post('/api/auth/login', { email, password: next })).body, {
    methods: ['totp', 'recovery_code']
  })
})

test('a platform that sends no mail, or does not know its address, says so to everybody', async t => {
  const sink = await mailSink(t)
  for (const environment of [{}, { ...sink.environment, PUBLIC_BASE_URL: '', HOST: '0.0.0.0' }]) {
    const lines: string[] = []
    const k = await createTestKernel({ environment, onLog: line => lines.push(line) })
    t.teardown(() => k.close())
    await k.user('ann')
    for (const email of ['ann@example.com', 'eve@example.com']) {
      t.match(await k.as.anonymous().post(forgot, { email }), {
        status: 200,
        body: { status: /sends no mail: ask an administrator/ }
      })
    }
    await idle(k)
    t.match(lines.join('\n'), /set SMTP_HOST and PUBLIC_BASE_URL/)
    t.same(await k.query('select 1 from identity.password_reset'), [])
  }
  t.equal(sink.offered, 0)
})

test('the link leads to the configured address, whatever a request says', async t => {
  const { k, sink } = await platform(t)
  const { email } = await k.user('ann')
  await k.as.anonymous().post(
    forgot,
    { email },
    {
      headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example', origin: 'https://evil.example' }
    }
  )
  const { raw } = await sink.next(email)
  t.notMatch(raw, /evil/)
})
