import { createTestKernel, type TestKernel, testClock } from 'busbar/sdk/testing'
import { generateSync } from 'otplib'
import { test } from 'tap'
import { follow } from './browser.js'

interface Record {
  action: string
  resource_type: string
  resource_id: string | null
  user_id: string | null
  user_email: string | null
  outcome: string
}

const recorded = async (k: TestKernel): Promise<Record[]> =>
  await k.query<Record>(`
  select action, resource_type, resource_id, user_id, user_email, details->>'outcome' as outcome
  from kernel.audit_log order by created_at, ctid`)

test('everything a user does to the own account is recorded under its name, with who did it', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()
  const { id, email, password } = await k.user('ann')
  await clock.advance(60_000)
  const seen = new Set((await recorded(k)).map(({ action }) => action))
  t.same([...seen], [], 'users that were made behind the API are not in the log')
  const codeOf = async (secret: string): Promise<string> => {
    await clock.advance(60_000)
    return generateSync({ secret, epoch: Math.floor(clock.now().getTime() / 1000) })
  }
  const login = async (given = password) => await anyone.post('/api/auth/login', { email, password: given })

  await login('not it at all')
  let browser = follow(k, await login())
  await browser.put('/api/auth/profile', { username: 'ann' })
  await browser.put('/api/auth/password', {
    current_password: 'not it at all',
    new_password: 'another good one'
  })
  const {
    body: { secret }
  } = await browser.post('/api/auth/totp/enroll', { password })
  browser = follow(k, await browser.post('/api/auth/totp/enroll/verify', { code: await codeOf(secret) }))
  const {
    body: { challenge }
  } = await login()
  await anyone.post('/api/auth/login/verify', { challenge, code: '000000' })
  browser = follow(k, await anyone.post('/api/auth/login/verify', { challenge, code: await codeOf(secret) }))
  await browser.post('/api/auth/totp/recovery-codes', { password, code: await codeOf(secret) })
  browser = follow(k, await browser.post('/api/auth/totp/disable', { password, code: await codeOf(secret) }))
  const { body: token } = await browser.post('/api/tokens', { name: 'ci', scopes: ['read'] })
  await browser.delete(`/api/tokens/${token.id as string}`)
  await anyone.post('/api/auth/forgot-password', { email })
  await anyone.post('/api/auth/forgot-password', { email: 'eve@example.com' })
  await browser.put('/api/account/alert-preferences', { deploy_success: false })
  await browser.post('/api/auth/logout')

  const own = { resource_type: 'user', resource_id: id, user_id: id, user_email: email, outcome: 'success' }
  const asked = {
    action: 'password_reset_requested',
    resource_type: 'user',
    resource_id: null,
    user_id: null,
    outcome: 'success'
  }
  t.match(await recorded(k), [
    {
      action: 'login_failed',
      resource_type: 'user',
      resource_id: null,
      user_id: null,
      user_email: email,
      outcome: 'failure'
    },
    { action: 'login', ...own },
    { action: 'update_profile', ...own },
    { action: 'change_password', ...own, outcome: 'failure' },
    { action: 'totp.enrollment_started', ...own },
    { action: 'totp.enabled', ...own },
    {
      action: 'login_2fa_failed',
      resource_type: 'user',
      resource_id: null,
      user_id: id,
      user_email: email,
      outcome: 'failure'
    },
    { action: 'login', ...own },
    { action: 'totp.recovery_codes_regenerated', ...own },
    { action: 'totp.disabled', ...own },
    { action: 'token_created', ...own, resource_type: 'token', resource_id: token.id },
    { action: 'token_deleted', ...own, resource_type: 'token', resource_id: token.id },
    { ...asked, user_email: email },
    { ...asked, user_email: 'eve@example.com' },
    { action: 'update_alert_preferences', ...own },
    { action: 'logout', ...own }
  ])
  const stored = JSON.stringify(await k.query('select * from kernel.audit_log'))
  for (const secretValue of [password, secret, token.token as string, challenge as string])
    t.notMatch(stored, secretValue)
})

test('everything an admin does to users is recorded under its name', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { password } = await k.user('admin')
  const ann = await k.as.session('ann')
  const {
    body: { secret }
  } = await ann.post('/api/auth/totp/enroll', { password })
  await ann.post('/api/auth/totp/enroll/verify', { code: generateSync({ secret }) })
  const {
    body: { id }
  } = await admin.post('/api/users', { email: 'bob@example.com', password, role: 'member' })
  const before = (await recorded(k)).length
  await admin.put(`/api/users/${id as string}/role`, { role: 'admin' })
  await admin.put(`/api/users/${id as string}/password`, {
    password: 'another good one',
    current_password: password
  })
  await admin.post(`/api/users/${ann.userId ?? ''}/totp/reset`, { current_password: password })
  await admin.delete(`/api/users/${id as string}`)
  const { body: invitation } = await admin.post('/api/users/invite', {
    email: 'eve@example.com',
    role: 'member'
  })
  await admin.delete(`/api/users/invitations/${invitation.id as string}`)
  const { body: second } = await admin.post('/api/users/invite', { email: 'eve@example.com', role: 'member' })
  const [, link = ''] = (second.link as string).split('?token=')
  const accepted = await k.as.anonymous().post('/api/auth/accept-invitation', { token: link, password })
  const eve = accepted.body.user.id as string

  const by = { user_id: admin.userId, user_email: 'admin@example.com', outcome: 'success' }
  t.match(await recorded(k).then(rows => rows.slice(before - 1)), [
    { action: 'create_user', resource_type: 'user', resource_id: id, ...by },
    { action: 'update_user_role', resource_type: 'user', resource_id: id, ...by },
    { action: 'reset_user_password', resource_type: 'user', resource_id: id, ...by },
    { action: 'totp.admin_reset', resource_type: 'user', resource_id: ann.userId, ...by },
    { action: 'delete_user', resource_type: 'user', resource_id: id, ...by },
    { action: 'invitation_sent', resource_type: 'invitation', resource_id: invitation.id, ...by },
    { action: 'invitation_revoked', resource_type: 'invitation', resource_id: invitation.id, ...by },
    { action: 'invitation_sent', resource_type: 'invitation', resource_id: second.id, ...by },
    {
      action: 'invitation_accepted',
      resource_type: 'user',
      resource_id: eve,
      user_id: eve,
      user_email: 'eve@example.com',
      outcome: 'success'
    }
  ])
})
