import { generateSync } from 'otplib'
import { test } from 'tap'
import type { Client, SessionGrant } from '../api.js'
import { admin, elsewhere, home, identityKit, sessionOf, signedInAdmin, signIn } from './identity-kit.js'

const cookiesOf = ({ cookies }: SessionGrant): string =>
  cookies.map(({ name, value }) => `${name}=${value}`).join('; ')

test('a sign-in by an unknown device at a new address is told of, once it has succeeded', async t => {
  const { identity, emitted } = await identityKit(t)
  const { grant, caller } = await signedInAdmin(identity)
  t.same(emitted, [], 'the first one of all is no news')
  await signIn(identity, admin, { ip: home.ip, userAgent: 'curl' })
  t.same(emitted, [], 'nor is another program at the address of a session')
  await signIn(identity, admin, { ...elsewhere, cookies: cookiesOf(grant) })
  t.same(emitted, [], 'nor a device that is known, wherever it is')
  await t.rejects(
    identity.login({ ...admin, password: 'not the password' }, { ...elsewhere, ip: '192.0.2.9' })
  )
  t.same(emitted, [], 'nor one that failed')
  await signIn(identity, admin, { ip: '::ffff:192.0.2.1', userAgent: undefined })
  t.same(emitted, [
    [
      'identity.newSignIn',
      { userId: caller.user.id, address: '192.0.2.1', client: 'a program without a name' }
    ]
  ])
  await signIn(identity, admin, { ip: '192.0.2.1', userAgent: 'curl' })
  t.equal(emitted.length, 1, 'there is a session from there now')
})

test('an IPv6 address is the one of its network', async t => {
  const { identity, emitted } = await identityKit(t)
  await signedInAdmin(identity, { ...home, ip: '2001:db8:1:2::1' })
  await signIn(identity, admin, { ...home, ip: '2001:db8:1:2:ffff::9' })
  t.same(emitted, [])
  await signIn(identity, admin, { ...home, ip: '2001:db8:1:3::1', userAgent: 'x'.repeat(600) })
  t.match(emitted, [['identity.newSignIn', { address: '2001:db8:1:3::1', client: 'x'.repeat(512) }]])
})

test('who has been signed in before, and has no session left, is told of the next one', async t => {
  const { identity, emitted, database } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  await database.sql("update $schema.user set last_active_at = created_at + interval '1 minute'")
  await identity.endSession(caller.user.id, caller.sessionId)
  await signIn(identity, admin, home)
  t.match(emitted, [['identity.newSignIn', { address: home.ip }]])
})

test('with a second factor it is the code that makes it one', async t => {
  const { identity, emitted, clock } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const { secret } = await identity.enrollTotp(caller, admin.password, home)
  const code = (): string => generateSync({ secret, epoch: Math.floor(clock.now().getTime() / 1000) })
  await identity.verifyTotp(caller, code(), home)
  await clock.advance(60_000)
  const stranger: Client = { ip: '192.0.2.1', userAgent: 'curl' }
  const outcome = await identity.login(admin, stranger)
  if (outcome.kind !== 'challenged') throw new Error('no second factor was asked for')
  t.same(emitted, [], 'a password alone makes no session')
  const grant = await identity.verifyLogin({ challenge: outcome.challenge.challenge, code: code() }, stranger)
  t.match(emitted, [['identity.newSignIn', { address: '192.0.2.1', client: 'curl' }]])
  t.ok(await sessionOf(identity, grant))
})
