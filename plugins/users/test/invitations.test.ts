import { randomUUID } from 'node:crypto'
import {
  createTestKernel,
  type TestClient,
  type TestKernel,
  type TestKernelOptions
} from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { cookiesOf, follow } from '../../account/test/browser.js'
import { type MailSink, mailSink, secretIn } from '../../mail/test/mail-sink.js'

const bob = 'bob@example.com'
const password = 'bobs password'

async function platform(
  t: Test,
  options: TestKernelOptions = {}
): Promise<{ k: TestKernel; sink: MailSink; admin: TestClient }> {
  const sink = await mailSink(t)
  const k = await createTestKernel({ ...options, environment: sink.environment })
  t.teardown(() => k.close())
  return { k, sink, admin: await k.as.session() }
}

const look = async (k: TestKernel, secret: string) =>
  await k.as.anonymous().get(`/api/auth/invitation?token=${secret}`)
const accept = async (k: TestKernel, secret: string, more = {}) =>
  await k.as.anonymous().post('/api/auth/accept-invitation', { token: secret, password, ...more })

test('an invited user accepts with the link of the mail and is signed in', async t => {
  const lines: string[] = []
  const { k, sink, admin } = await platform(t, { onLog: line => lines.push(line) })
  const invited = await admin.post('/api/users/invite', { email: ' Bob@Example.com', role: 'admin' })
  t.equal(invited.status, 201)
  t.same(
    Object.keys(invited.body).sort(),
    ['accepted_at', 'created_at', 'email', 'expires_at', 'id', 'invited_by_user_id', 'role'],
    'the link goes by mail only'
  )
  t.match(invited.body, { email: bob, role: 'admin', invited_by_user_id: admin.userId, accepted_at: null })
  t.equal(Date.parse(invited.body.expires_at) - Date.parse(invited.body.created_at), 7 * 86_400_000)
  const mail = await sink.next(bob)
  t.match(mail.text, /admin has invited you to Busbar.* as an administrator/s)
  t.match(mail.text, /https:\/\/busbar\.example\.com\/accept-invite\?token=[0-9a-f]{64}\r?\n/)
  const secret = secretIn(mail)

  t.same((await admin.get('/api/users/invitations')).body, [invited.body])
  t.same((await look(k, secret)).body, { email: bob, role: 'admin' })
  t.match(await accept(k, secret, { password: 'short' }), { status: 400, body: { code: 'E_USER_PASSWORD' } })
  const accepted = await accept(k, secret, {
    username: 'bob',
    first_name: 'Bob',
    last_name: 'Builder',
    email: 'eve@example.com'
  })
  t.match(accepted, {
    status: 200,
    body: {
      user: { email: bob, role: 'admin', username: 'bob', first_name: 'Bob', last_name: 'Builder' },
      expires_in: 3600
    }
  })
  t.same(Object.keys(accepted.body).sort(), ['expires_in', 'refresh_token', 'token', 'user'])
  t.same(Object.keys(cookiesOf(accepted)).sort(), ['csrf_token', 'known_device', 'refresh_token', 'token'])
  t.equal((await follow(k, accepted).get('/api/users')).status, 200)
  t.equal((await k.as.anonymous().post('/api/auth/login', { email: bob, password })).status, 200)

  t.match(await look(k, secret), { status: 410, body: { error: /already been accepted/ } })
  t.match(await accept(k, secret), { status: 410 })
  t.same((await admin.get('/api/users/invitations')).body, [])
  t.match(await admin.delete(`/api/users/invitations/${invited.body.id as string}`), { status: 404 })
  t.notMatch(JSON.stringify(await k.query('select * from identity.invitation')), secret)
  t.notMatch(lines.join('\n'), secret)
  const audit = await k.query<{
    action: string
    resource_type: string
    resource_id: string | null
  }>(
    "select action, resource_type, resource_id from kernel.audit_log where action like 'invitation%' and details->>'outcome' = 'success' order by created_at"
  )
  t.same(audit, [
    { action: 'invitation_sent', resource_type: 'invitation', resource_id: invited.body.id },
    { action: 'invitation_accepted', resource_type: 'user', resource_id: accepted.body.user.id }
  ])
})

test('without mail the admin is given the link, once', async t => {
  for (const [environment, start] of [
    [{ PUBLIC_BASE_URL: 'https://busbar.example.com/' }, 'https://busbar.example.com/accept-invite'],
    [{ HOST: '0.0.0.0' }, '/accept-invite']
  ] as const) {
    const k = await createTestKernel({ environment })
    t.teardown(() => k.close())
    const admin = await k.as.session()
    const { status, body } = await admin.post('/api/users/invite', { email: bob })
    t.equal(status, 201)
    t.match(body, { role: 'member' })
    const [page, secret = ''] = (body.link as string).split('?token=')
    t.equal(page, start)
    t.notOk('link' in (await admin.get('/api/users/invitations')).body[0])
    t.match(await accept(k, secret), { status: 200, body: { user: { role: 'member' } } })
  }
})

test('a new invitation to an address takes the place of the one that waits', async t => {
  const { k, sink, admin } = await platform(t)
  await admin.post('/api/users/invite', { email: bob, role: 'member' })
  const first = secretIn(await sink.next(bob))
  const again = await admin.post('/api/users/invite', { email: 'BOB@example.com', role: 'admin' })
  const second = secretIn(await sink.next(bob, 1))
  t.match(await look(k, first), { status: 404, body: { code: 'E_INVITATION_NOT_FOUND' } })
  t.match((await admin.get('/api/users/invitations')).body, [{ id: again.body.id, role: 'admin' }])
  t.match(await accept(k, first), { status: 404 })
  t.match(await accept(k, second), { status: 200, body: { user: { role: 'admin' } } })
})

test('many invitations to one address at the same time leave one that works', async t => {
  const { k, admin } = await platform(t)
  const made = await Promise.all(
    Array.from(
      { length: 6 },
      async () => await admin.post('/api/users/invite', { email: bob, role: 'member' })
    )
  )
  t.same(
    made.map(({ status }) => status),
    Array(6).fill(201)
  )
  t.equal((await admin.get('/api/users/invitations')).body.length, 1)
  t.equal((await k.query('select 1 from identity.invitation')).length, 1)
})

test('an invitation is revoked, and one that has expired is told apart', async t => {
  const { k, sink, admin } = await platform(t)
  const {
    body: { id }
  } = await admin.post('/api/users/invite', { email: bob, role: 'member' })
  const secret = secretIn(await sink.next(bob))
  t.same(
    await admin
      .delete(`/api/users/invitations/${id as string}`)
      .then(({ status, body }) => ({ status, body })),
    { status: 204, body: null }
  )
  t.match(await accept(k, secret), { status: 404 })
  t.match(await admin.delete(`/api/users/invitations/${id as string}`), {
    status: 404,
    body: { error: 'invitation not found' }
  })

  await admin.post('/api/users/invite', { email: bob, role: 'member' })
  const other = secretIn(await sink.next(bob, 1))
  t.equal((await look(k, other)).status, 200)
  await k.query('update identity.invitation set expires_at = now()')
  t.match(await look(k, other), { status: 410, body: { error: /expired/ } })
  t.match(await accept(k, other), { status: 410, body: { code: 'E_INVITATION_EXPIRED' } })
  t.match(await admin.get('/api/users/invitations'), { headers: { 'x-total-count': '0' } })
})

test('an address that has an account is not invited', async t => {
  const { k, admin } = await platform(t)
  const { email } = await k.user('ann')
  t.match(await admin.post('/api/users/invite', { email, role: 'member' }), {
    status: 409,
    body: { code: 'E_USER_EMAIL_TAKEN' }
  })
  t.match(await admin.post('/api/users/invite', { email: 'nonsense', role: 'member' }), {
    status: 400,
    body: { error: 'email is not a valid address' }
  })
  t.match(await admin.post('/api/users/invite', { email: bob, role: 'root' }), {
    status: 400,
    body: { error: 'role must be one of member, admin' }
  })
  t.match(await admin.post('/api/users/invite', { role: 'member' }), {
    status: 400,
    body: { error: 'email is required' }
  })
  t.same((await admin.get('/api/users/invitations')).body, [])
})

test('a user who is made while an invitation waits ends it', async t => {
  const { k, sink, admin } = await platform(t)
  await admin.post('/api/users/invite', { email: bob, role: 'admin' })
  const secret = secretIn(await sink.next(bob))
  t.equal((await admin.post('/api/users', { email: bob, password, role: 'member' })).status, 201)
  t.match(await accept(k, secret), { status: 404 })
  t.same((await admin.get('/api/users/invitations')).body, [])
})

test('of many who accept at the same time one is made', async t => {
  const { k, sink, admin } = await platform(t)
  await admin.post('/api/users/invite', { email: bob, role: 'member' })
  const secret = secretIn(await sink.next(bob))
  const answers = await Promise.all(Array.from({ length: 6 }, async () => await accept(k, secret)))
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array<number>(5).fill(410)])
  t.equal((await admin.get('/api/users')).body.length, 2)
})

test('what an admin has begun to give does not outlive being one', async t => {
  const { k, sink, admin } = await platform(t)
  await k.user('ann')
  const { userId } = await k.as.session('ann')
  await admin.put(`/api/users/${userId ?? ''}/role`, { role: 'admin' })
  const invite = async (email: string) => {
    const login = await k.as
      .anonymous()
      .post('/api/auth/login', { email: 'ann@example.com', password: (await k.user('ann')).password })
    t.equal((await follow(k, login).post('/api/users/invite', { email, role: 'admin' })).status, 201)
    return secretIn(await sink.next(email))
  }
  const first = await invite('eve@example.com')
  await admin.put(`/api/users/${userId ?? ''}/role`, { role: 'member' })
  t.match(await accept(k, first), { status: 404 })
  await admin.put(`/api/users/${userId ?? ''}/role`, { role: 'admin' })
  const second = await invite('mallory@example.com')
  t.equal((await admin.delete(`/api/users/${userId ?? ''}`)).status, 200)
  t.match(await accept(k, second), { status: 404 })
})

test('tokens may look at invitations and revoke them, as far as scope and role go, and invite nobody', async t => {
  const { k, admin } = await platform(t)
  const {
    body: { id }
  } = await admin.post('/api/users/invite', { email: bob, role: 'member' })
  const write = await k.as.token('write')
  t.match(await write.post('/api/users/invite', { email: bob }), {
    status: 403,
    body: { error: /requires a session/ }
  })
  t.equal((await (await k.as.token('read')).get('/api/users/invitations')).body.length, 1)
  t.equal((await (await k.as.token('write', { user: 'ann' })).get('/api/users/invitations')).status, 403)
  t.match(await (await k.as.token('read')).delete(`/api/users/invitations/${id as string}`), {
    status: 403,
    body: { error: 'token lacks required scope: write' }
  })
  t.equal((await write.delete(`/api/users/invitations/${id as string}`)).status, 204)
  t.match(await write.delete('/api/users/invitations/nonsense'), { status: 400 })
  t.match(await write.delete(`/api/users/invitations/${randomUUID()}`), { status: 404 })
})

test('a link without its secret is told apart from one that is over', async t => {
  const { k } = await platform(t)
  t.match(await k.as.anonymous().get('/api/auth/invitation'), { status: 400, body: { error: /token/ } })
  t.match(await look(k, ''), { status: 404 })
  t.match(await look(k, 'x'.repeat(129)), { status: 400 })
})
