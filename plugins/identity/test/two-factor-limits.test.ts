import type { SessionCaller } from 'busbar/sdk'
import { generateSync } from 'otplib'
import { type Test, test } from 'tap'
import type { Identity } from '../api.js'
import {
  admin,
  elsewhere,
  home,
  identityKit,
  problemOf,
  sessionOf,
  signedInAdmin,
  signIn
} from './identity-kit.js'

const wrong = '000000'

/** An admin with the factor on, half a minute after its first code. */
async function withFactor(t: Test) {
  const kit = await identityKit(t)
  const { identity, clock } = kit
  const codeOf = (secret: string): string =>
    generateSync({ secret, epoch: Math.floor(clock.now().getTime() / 1000) })
  const enable = async (caller: SessionCaller, password: string) => {
    const { secret } = await identity.enrollTotp(caller, password, home)
    const verified = await identity.verifyTotp(caller, codeOf(secret), home)
    await clock.advance(60_000)
    return {
      ...verified,
      secret,
      code: () => codeOf(secret),
      caller: await sessionOf(identity, verified.grant)
    }
  }
  const own = await enable((await signedInAdmin(identity)).caller, admin.password)
  return { ...kit, ...own, enable }
}

async function challengeOf(
  identity: Identity,
  who = admin
): Promise<{ challenge: string; methods: readonly string[] }> {
  const outcome = await identity.login(who, home)
  if (outcome.kind !== 'challenged') throw new Error('no second factor was asked for')
  return outcome.challenge
}
const codeOfRefusal = async (work: Promise<unknown>): Promise<string> => (await problemOf(work)).code

test('a factor that is on is neither verified again nor replaced', async t => {
  const { identity, caller, code, recoveryCodes } = await withFactor(t)
  t.equal(await codeOfRefusal(identity.verifyTotp(caller, code(), home)), 'E_TOTP_ENABLED')
  t.equal(await codeOfRefusal(identity.enrollTotp(caller, admin.password, home)), 'E_TOTP_ENABLED')
  const { challenge } = await challengeOf(identity)
  await t.resolves(
    identity.verifyLogin({ challenge, code: recoveryCodes[0] ?? '', method: 'recovery_code' }, home),
    'its codes are those of before'
  )
})

test('who has used all recovery codes is asked for the other kind only', async t => {
  const { identity, recoveryCodes } = await withFactor(t)
  for (const code of recoveryCodes) {
    const { challenge, methods } = await challengeOf(identity)
    t.same(methods, ['totp', 'recovery_code'])
    await identity.verifyLogin({ challenge, code, method: 'recovery_code' }, home)
  }
  t.same((await challengeOf(identity)).methods, ['totp'])
})

test('a login ends the other logins that wait for a code, and so do the ways in which the factor goes', async t => {
  const { identity, caller, code, recoveryCodes, enable } = await withFactor(t)
  const [open, other] = [await challengeOf(identity), await challengeOf(identity)]
  await identity.verifyLogin({ challenge: open.challenge, code: code() }, home)
  const late = { code: recoveryCodes[0] ?? '', method: 'recovery_code' }
  t.equal(
    await codeOfRefusal(identity.verifyLogin({ challenge: other.challenge, ...late }, home)),
    'E_AUTH_CHALLENGE'
  )

  const waiting = await challengeOf(identity)
  await identity.disableTotp(caller, { password: admin.password, ...late }, home)
  t.equal(
    await codeOfRefusal(identity.verifyLogin({ challenge: waiting.challenge, code: code() }, home)),
    'E_AUTH_CHALLENGE',
    'it was turned off'
  )

  const bob = { email: 'bob@example.com', password: 'bobs password' }
  const { id } = await identity.createUser({ ...bob, role: 'member' })
  const bobs = await enable((await signIn(identity, bob)).caller, bob.password)
  const his = await challengeOf(identity, bob)
  await identity.resetTotp((await signIn(identity, admin)).caller, id, { password: admin.password }, home)
  t.equal(
    await codeOfRefusal(identity.verifyLogin({ challenge: his.challenge, code: bobs.code() }, home)),
    'E_AUTH_CHALLENGE',
    'it was taken away'
  )
})

test('a recovery code is of one user', async t => {
  const { identity, recoveryCodes, enable, caller } = await withFactor(t)
  const bob = { email: 'bob@example.com', password: 'bobs password' }
  await identity.createUser({ ...bob, role: 'member' })
  await enable((await signIn(identity, bob)).caller, bob.password)
  const { challenge } = await challengeOf(identity, bob)
  t.equal(
    await codeOfRefusal(
      identity.verifyLogin({ challenge, code: recoveryCodes[0] ?? '', method: 'recovery_code' }, home)
    ),
    'E_TOTP_CODE'
  )
  t.equal((await identity.totpStatus(caller.user.id)).recovery_codes_remaining, 10)
})

test('wrong codes at enrollment lock that session, and count as failures of the account where they come from', async t => {
  const { identity } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  await identity.enrollTotp(caller, admin.password, home)
  const statuses: number[] = []
  for (let n = 0; n < 6; n++)
    statuses.push((await problemOf(identity.verifyTotp(caller, wrong, home))).status)
  t.same(statuses, [401, 401, 401, 401, 429, 429])
  t.equal((await problemOf(identity.login(admin, home))).status, 429)
  t.equal((await identity.login(admin, elsewhere)).kind, 'signedIn', 'from elsewhere they do not count')
})

test('wrong codes of who is signed in lock that session, and count as failures of the account where they come from', async t => {
  const { identity, caller } = await withFactor(t)
  const statuses: number[] = []
  for (let n = 0; n < 6; n++)
    statuses.push(
      (await problemOf(identity.disableTotp(caller, { password: admin.password, code: wrong }, home))).status
    )
  t.same(statuses, [401, 401, 401, 401, 429, 429])
  t.equal((await problemOf(identity.login(admin, home))).status, 429)
  t.equal((await identity.login(admin, elsewhere)).kind, 'challenged')
})

test('logins that nobody has finished do not pile up', async t => {
  const { identity, clock, database, code } = await withFactor(t)
  const open = async () =>
    (await database.sql<{ hash: string }>('select hash from $schema.login_challenge')).length
  for (let n = 0; n < 3; n++) await challengeOf(identity)
  t.equal(await open(), 3)
  await clock.advance(299_999)
  const { challenge } = await challengeOf(identity)
  t.equal(await open(), 4, 'those that can still be answered stay')
  await clock.advance(1)
  await challengeOf(identity)
  t.equal(await open(), 2)
  await t.resolves(identity.verifyLogin({ challenge, code: code() }, home))
})
