import { test } from 'tap'
import {
  admin,
  elsewhere,
  home,
  identityKit,
  problemOf,
  refusal,
  showSession,
  showToken,
  signedInAdmin,
  signIn
} from './identity-kit.js'

const bob = { email: 'bob@example.com', password: 'bobs password' }
const token = { name: 'ci', scope: 'write', expiresInDays: null, projectIds: [] } as const
const projectA = '00000000-0000-4000-8000-00000000000a'
const projectB = '00000000-0000-4000-8000-00000000000b'

test('an address belongs to one user', async t => {
  const { identity, clock } = await identityKit(t)
  await identity.setUp(admin)
  await clock.advance(1)
  t.match(await identity.createUser({ ...bob, role: 'member', username: 'bob' }), {
    email: bob.email,
    role: 'member',
    username: 'bob'
  })
  t.equal(
    await refusal(identity.createUser({ ...bob, email: 'BOB@example.com', role: 'admin' })),
    '409: a user with the email bob@example.com already exists'
  )
  const { rows, total } = await identity.listUsers({ limit: 1, offset: 1 })
  t.equal(total, 2)
  t.match(rows, [{ email: bob.email }])
})

test('a profile keeps what is absent', async t => {
  const { identity } = await identityKit(t)
  const { caller, grant } = await signedInAdmin(identity)
  await identity.updateProfile(caller.user.id, { username: 'ada', firstName: 'Ada' })
  t.match(await identity.updateProfile(caller.user.id, { lastName: 'Lovelace' }), {
    username: 'ada',
    first_name: 'Ada',
    last_name: 'Lovelace'
  })
  t.match(
    await showSession(identity, grant),
    { caller: { user: { username: 'ada' } } },
    'the session goes on under the new name'
  )
  t.match(await identity.updateProfile(caller.user.id, {}), { username: 'ada' })
})

test('a password change ends the other sessions, renews this one and keeps the tokens', async t => {
  const { identity } = await identityKit(t)
  const { caller, grant } = await signedInAdmin(identity)
  const { grant: other } = await signIn(identity, admin, elsewhere)
  const { value } = await identity.createToken(caller, token)
  const change = { currentPassword: admin.password, newPassword: 'a better one' }
  t.equal(
    await refusal(identity.changePassword(caller, { ...change, newPassword: 'short' }, home)),
    '400: password must have at least 8 characters'
  )
  t.equal(
    await refusal(identity.changePassword(caller, { ...change, currentPassword: 'wrong one' }, home)),
    '401: current password is incorrect'
  )
  const renewed = await identity.changePassword(caller, change, home)
  t.equal((await showSession(identity, grant)).kind, 'invalid')
  t.equal((await showSession(identity, other)).kind, 'invalid')
  t.equal((await showSession(identity, renewed)).kind, 'caller')
  t.equal((await showToken(identity, value)).kind, 'caller')
  t.equal((await problemOf(identity.login(admin, home))).status, 401)
  await t.resolves(signIn(identity, { ...admin, password: 'a better one' }))
})

test('wrong current passwords count towards lock-out', async t => {
  const { identity } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const guess = async () =>
    (
      await problemOf(
        identity.changePassword(caller, { currentPassword: 'wrong one', newPassword: 'a better one' }, home)
      )
    ).status
  t.same(
    [await guess(), await guess(), await guess(), await guess(), await guess()],
    [401, 401, 401, 401, 429]
  )
  t.equal((await problemOf(identity.login(admin, home))).status, 429)
})

test('of two password changes at the same time one succeeds', async t => {
  const { identity } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const results = await Promise.allSettled(
    ['first password', 'second password'].map(
      async newPassword =>
        await identity.changePassword(caller, { currentPassword: admin.password, newPassword }, home)
    )
  )
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('a password reset by an admin ends sessions and tokens of the user', async t => {
  const { identity } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const user = await identity.createUser({ ...bob, role: 'member' })
  const bobs = await signIn(identity, bob)
  const { value } = await identity.createToken(bobs.caller, token)
  const reset = { currentPassword: admin.password, newPassword: 'set by ada' }
  t.equal(
    await refusal(identity.resetPassword(caller, user.id, { ...reset, currentPassword: bob.password }, home)),
    '401: current password is incorrect'
  )
  t.equal(await refusal(identity.resetPassword(caller, projectA, reset, home)), '404: user not found')
  await identity.resetPassword(caller, user.id, reset, home)
  t.equal((await showSession(identity, bobs.grant)).kind, 'invalid')
  t.equal((await showToken(identity, value)).kind, 'invalid')
  await t.resolves(signIn(identity, { ...bob, password: 'set by ada' }))
})

test('a role change ends the sessions, and a token keeps the lower role', async t => {
  const { identity } = await identityKit(t)
  await signedInAdmin(identity)
  const user = await identity.createUser({ ...bob, role: 'admin' })
  const asAdmin = await signIn(identity, bob)
  const { value: adminToken, row } = await identity.createToken(asAdmin.caller, token)
  t.equal(row.role_at_issue, 'admin')
  const roleOf = async (value: string) => {
    const found = await showToken(identity, value)
    return found.kind === 'caller' ? found.caller.user.role : found.kind
  }
  t.equal(await roleOf(adminToken), 'admin')

  t.match(await identity.changeRole(user.id, 'member'), { role: 'member' })
  t.equal((await showSession(identity, asAdmin.grant)).kind, 'invalid')
  t.equal(await roleOf(adminToken), 'member', 'demotion lowers an old token')
  const { value: memberToken } = await identity.createToken((await signIn(identity, bob)).caller, token)

  await identity.changeRole(user.id, 'admin')
  t.equal(await roleOf(memberToken), 'member', 'promotion lifts none')
  t.equal(await roleOf(adminToken), 'admin')
})

test('a role that stays the same ends no session', async t => {
  const { identity } = await identityKit(t)
  const { caller, grant } = await signedInAdmin(identity)
  await identity.changeRole(caller.user.id, 'admin')
  t.equal((await showSession(identity, grant)).kind, 'caller')
})

test('the last admin can be neither demoted nor deleted, and nobody deletes themselves', async t => {
  const { identity } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const member = await identity.createUser({ ...bob, role: 'member' })
  t.match(
    await refusal(identity.changeRole(caller.user.id, 'member')),
    /^400: the last admin cannot be demoted/
  )
  t.match(
    await refusal(identity.deleteUser(caller.user.id, member.id)),
    /^400: the last admin cannot be deleted/
  )
  t.equal(
    await refusal(identity.deleteUser(caller.user.id, caller.user.id)),
    '400: you cannot delete your own account'
  )
  t.equal(await refusal(identity.changeRole(projectA, 'member')), '404: user not found')
  t.equal(await refusal(identity.changeRole(projectA, 'admin')), '404: user not found')
  t.equal(await refusal(identity.deleteUser(projectA, caller.user.id)), '404: user not found')
})

test('two admins who demote and delete each other at the same time leave one', async t => {
  const { identity, start } = await identityKit(t)
  const ada = await identity.setUp(admin)
  for (let round = 0; round < 5; round++) {
    const other = await identity.createUser({
      email: `a${round}@example.com`,
      password: 'password',
      role: 'admin'
    })
    const results = await Promise.allSettled([
      identity.changeRole(ada.id, 'member'),
      start().changeRole(other.id, 'member'),
      start().deleteUser(ada.id, other.id)
    ])
    const { rows } = await identity.listUsers({ limit: 99, offset: 0 })
    t.equal(rows.filter(({ role }) => role === 'admin').length, 1)
    for (const result of results)
      if (result.status === 'rejected') t.ok([400, 404].includes(result.reason.status), String(result.reason))
    if (!rows.some(({ id }) => id === ada.id)) break
    await identity.changeRole(ada.id, 'admin')
  }
})

test('deleting a user ends what they had', async t => {
  const { identity } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const user = await identity.createUser({ ...bob, role: 'member' })
  const bobs = await signIn(identity, bob)
  const { value } = await identity.createToken(bobs.caller, token)
  t.equal((await showToken(identity, value)).kind, 'caller')
  await identity.deleteUser(user.id, caller.user.id)
  t.equal((await showSession(identity, bobs.grant)).kind, 'invalid')
  t.equal((await showToken(identity, value)).kind, 'invalid')
  t.equal((await problemOf(identity.login(bob, home))).status, 401)
  t.equal(await identity.findUser(user.id), undefined)
})

test('a user whom another schema still refers to is not deleted', async t => {
  const { identity, database } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const user = await identity.createUser({ ...bob, role: 'member' })
  for (const rule of ['restrict', 'no action']) {
    await database.sql(
      `create table $schema.thing (owner uuid references $schema.user (id) on delete ${rule})`
    )
    await database.sql('insert into $schema.thing values (?)', [user.id])
    t.match(
      await refusal(identity.deleteUser(user.id, caller.user.id)),
      /^409: this user still owns projects/,
      rule
    )
    await database.sql('drop table $schema.thing')
  }
})

test('pins leave with their project and never widen a token', async t => {
  const { identity, database, start } = await identityKit(t)
  const other = start()
  const { caller } = await signedInAdmin(identity)
  const { row, value } = await identity.createToken(caller, {
    ...token,
    projectIds: [projectB, projectA, projectB]
  })
  t.match(row, { pinned: true, project_ids: [projectA, projectB] })
  const pinsOf = async () => {
    const found = await showToken(other, value)
    return found.kind === 'caller' && found.caller.kind === 'token' ? found.caller.pins : found.kind
  }
  t.same(new Set(await pinsOf()), new Set([projectA, projectB]))
  await database.transaction(async tx => {
    await identity.removePins(projectA, tx)
  })
  t.same(await pinsOf(), [projectB])
  await database.transaction(async tx => {
    await identity.removePins(projectB, tx)
  })
  t.same(await pinsOf(), [], 'it reaches nothing')
  t.match((await identity.listTokens(caller.user.id, { limit: 9, offset: 0 })).rows, [
    { pinned: true, project_ids: [] }
  ])
  await t.rejects(
    database.transaction(async tx => {
      await identity.removePins(projectB, tx)
      throw new Error('rolled back')
    }),
    { message: 'rolled back' }
  )
})

test('a token is seen and deleted by its owner only', async t => {
  const { identity, clock } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const user = await identity.createUser({ ...bob, role: 'member' })
  const { row } = await identity.createToken(caller, token)
  await clock.advance(1)
  const { row: newer } = await identity.createToken(caller, { ...token, name: 'newer', scope: 'metrics' })
  t.equal(await identity.deleteToken(user.id, row.id), false)
  t.same(await identity.listTokens(user.id, { limit: 9, offset: 0 }), { rows: [], total: 0 })
  const { rows, total } = await identity.listTokens(caller.user.id, { limit: 9, offset: 0 })
  t.same(
    rows.map(({ id, scopes }) => [id, scopes]),
    [
      [newer.id, ['metrics']],
      [row.id, ['write']]
    ]
  )
  t.equal(total, 2)
  t.same(rows[1], row, 'the list says what creation said')
})
