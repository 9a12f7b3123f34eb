import { randomUUID } from 'node:crypto'
import { userRemoval } from 'busbar/api/users'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

const bob = { email: 'Bob@Example.com', password: 'bobs password', username: 'bob' }

test('an admin makes a member, who signs in and is listed', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const created = await admin.post('/api/users', bob)
  t.match(created, {
    status: 201,
    body: { email: 'bob@example.com', username: 'bob', role: 'member', first_name: '' }
  })
  t.notMatch(JSON.stringify(created.body), /argon2|password/)
  t.match(await admin.post('/api/users', bob), {
    status: 409,
    body: { error: 'a user with the email bob@example.com already exists' }
  })
  t.match(await admin.post('/api/users', { ...bob, role: 'root' }), {
    status: 400,
    body: { error: 'role must be one of member, admin' }
  })
  t.equal((await k.as.anonymous().post('/api/auth/login', bob)).status, 200)

  const listed = await admin.get('/api/users')
  t.equal(listed.headers['x-total-count'], '2')
  t.same(Object.keys(listed.body[0]).sort(), [
    'created_at',
    'email',
    'first_name',
    'id',
    'last_active_at',
    'last_name',
    'role',
    'username'
  ])
  t.match((await admin.get('/api/users?limit=1&offset=1')).body, [{ email: 'bob@example.com' }])
})

test('only admins administer users, and changes need a session', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const member = await k.as.session('member')
  const { id } = await k.user('member')
  for (const [method, path] of [
    ['GET', ''],
    ['POST', ''],
    ['DELETE', `/${id}`],
    ['PUT', `/${id}/role`],
    ['PUT', `/${id}/password`],
    ['POST', `/${id}/totp/reset`]
  ] as const) {
    t.match(
      await member.send(method, `/api/users${path}`, { body: {} }),
      { status: 403, body: { error: 'forbidden: only users with the role admin may do this' } },
      `${method} ${path}`
    )
  }
  t.equal((await (await k.as.token('read', { user: 'member' })).get('/api/users')).status, 403)
  t.equal((await (await k.as.token('read')).get('/api/users')).status, 200)
  t.match(await (await k.as.token('write')).post('/api/users', bob), {
    status: 403,
    body: { error: /requires a session/ }
  })
})

test('the last admin stays, and nobody deletes themselves', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { id } = await k.user('admin')
  t.match(await admin.put(`/api/users/${id}/role`, { role: 'member' }), {
    status: 400,
    body: { error: /^the last admin cannot be demoted/ }
  })
  t.match(await admin.delete(`/api/users/${id}`), {
    status: 400,
    body: { error: 'you cannot delete your own account' }
  })
  t.match(await admin.delete(`/api/users/${randomUUID()}`), {
    status: 404,
    body: { error: 'user not found' }
  })
  t.match(await admin.put('/api/users/me/role', { role: 'member' }), { status: 400 })
})

test('a role change ends the sessions and tells the new role', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const member = await k.as.session('member')
  const { id } = await k.user('member')
  const token = await k.as.token('read', { user: 'member' })
  const changed = await admin.put(`/api/users/${id}/role`, { role: 'admin' })
  t.match(changed, { status: 200, body: { id, role: 'admin' } })
  t.notOk('last_active_at' in changed.body)
  t.equal((await member.get('/api/auth/me')).status, 401)
  t.match(
    await token.get('/api/users'),
    { status: 403, body: { error: 'forbidden: only users with the role admin may do this' } },
    'an old token is not lifted'
  )
})

test("a reset password ends sessions and tokens and asks for the admin's own", async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { password: current_password } = await k.user('admin')
  const { id, email } = await k.user('member')
  const member = await k.as.session('member')
  const token = await k.as.token('read', { user: 'member' })
  t.match(await admin.put(`/api/users/${id}/password`, { password: 'set by admin' }), {
    status: 400,
    body: { error: 'current_password is required' }
  })
  t.match(
    await admin.put(`/api/users/${id}/password`, { password: 'set by admin', current_password: 'wrong one' }),
    { status: 401, body: { error: 'current password is incorrect' } }
  )
  t.match(await admin.put(`/api/users/${id}/password`, { password: 'set by admin', current_password }), {
    status: 200,
    body: { status: 'password updated' }
  })
  t.equal((await member.get('/api/auth/me')).status, 401)
  t.equal((await token.get('/api/auth/me')).status, 401)
  t.equal((await k.as.anonymous().post('/api/auth/login', { email, password: 'set by admin' })).status, 200)
})

test('a plugin that holds something of a user stands in the way of deleting them', async t => {
  let reason: string | undefined = 'bob still owns the boat: sell it first'
  const boats = definePlugin({
    id: 'boats',
    contributes(contribute) {
      contribute(userRemoval, 'boats', { refusal: async () => reason })
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'boats', requires: { users: '^0.1.0' } }, definition: boats }]
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const member = await k.as.session('member')
  const { id } = await k.user('member')
  t.match(await admin.delete(`/api/users/${id}`), {
    status: 409,
    body: { error: reason, code: 'E_USER_IN_USE' }
  })
  reason = undefined
  t.match(await admin.delete(`/api/users/${id}`), { status: 200, body: { status: 'deleted' } })
  t.equal((await member.get('/api/auth/me')).status, 401)
  t.equal((await admin.get('/api/users')).body.length, 1)
})
