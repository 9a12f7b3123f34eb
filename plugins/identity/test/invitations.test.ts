import { test } from 'tap'
import { home, identityKit, refusal, signedInAdmin } from './identity-kit.js'

const bob = 'bob@example.com'
const account = { password: 'bobs password' }
const weekMs = 7 * 86_400_000

test('an invitation works for seven days', async t => {
  const { identity, clock, database } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const invite = async () =>
    await database.transaction(async tx => await identity.invite(caller, { email: bob, role: 'member' }, tx))
  const { row, secret } = await invite()
  t.equal(row.expires_at.getTime() - clock.now().getTime(), weekMs)
  await clock.advance(weekMs - 1)
  t.same(await identity.findInvitation(secret), { email: bob, role: 'member' })
  await clock.advance(1)
  t.match(await refusal(identity.findInvitation(secret)), /^410: this invitation has expired/)
  t.match(await refusal(identity.acceptInvitation({ ...account, secret }, home)), /^410/)
  t.same(await identity.listInvitations({ limit: 9, offset: 0 }), { rows: [], total: 0 })

  const again = await invite()
  t.match(await refusal(identity.findInvitation(secret)), /^404/, 'one that has expired is replaced as well')
  await clock.advance(weekMs - 1)
  t.match(await identity.acceptInvitation({ ...account, secret: again.secret }, home), {
    result: { user: { email: bob, role: 'member' } }
  })
})

test('who is no admin any more invites nobody, whatever the session says', async t => {
  const { identity, database } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const other = await identity.createUser({
    email: 'ann@example.com',
    password: 'anns password',
    role: 'admin'
  })
  await identity.changeRole(caller.user.id, 'member')
  t.match(
    await refusal(
      database.transaction(async tx => await identity.invite(caller, { email: bob, role: 'admin' }, tx))
    ),
    /^401/
  )
  t.equal((await identity.findUser(other.id))?.role, 'admin')
})

test('who accepts an invitation needs a password as any other user, and the invitation stays when it is none', async t => {
  const { identity, database } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const { secret } = await database.transaction(
    async tx => await identity.invite(caller, { email: bob, role: 'member' }, tx)
  )
  t.match(await refusal(identity.acceptInvitation({ password: 'short', secret }, home)), /^400: password/)
  t.match(await identity.acceptInvitation({ ...account, secret }, home), { result: { user: { email: bob } } })
})
