import type { Clock, SessionCaller } from 'busbar/sdk'
import { generateSync } from 'otplib'
import { test } from 'tap'
import type { Identity } from '../api.js'
import {
  admin,
  elsewhere,
  home,
  identityKit,
  problemOf,
  raceAt,
  refusal,
  sessionOf,
  showSession,
  signedInAdmin,
  signIn
} from './identity-kit.js'

const codeAt = (secret: string, clock: Clock, offsetSeconds = 0): string =>
  generateSync({ secret, epoch: Math.floor(clock.now().getTime() / 1000) + offsetSeconds })

/** An admin with the factor on, half a minute after its first code. */
async function withFactor(t: Parameters<typeof identityKit>[0]) {
  const kit = await identityKit(t)
  const { identity, clock } = kit
  const { caller } = await signedInAdmin(identity)
  const { secret, uri } = await identity.enrollTotp(caller, admin.password, home)
  const { recoveryCodes, grant } = await identity.verifyTotp(caller, codeAt(secret, clock), home)
  await clock.advance(60_000)
  return { ...kit, secret, uri, recoveryCodes, grant, caller: await sessionOf(identity, grant) }
}

async function challenge(identity: Identity) {
  const outcome = await identity.login(admin, home)
  if (outcome.kind !== 'challenged') throw new Error('no second factor was asked for')
  return outcome.challenge
}

test('the factor counts after its first code, which ends the other sessions', async t => {
  const { identity, clock, database } = await identityKit(t)
  const { caller, grant } = await signedInAdmin(identity)
  const { grant: other } = await signIn(identity, admin, elsewhere)
  t.equal(
    await refusal(identity.verifyTotp(caller, '123456', home)),
    '409: no two-factor enrollment is pending: enroll first'
  )
  t.equal(await refusal(identity.enrollTotp(caller, 'wrong one', home)), '401: current password is incorrect')
  const first = await identity.enrollTotp(caller, admin.password, home)
  const { secret, uri } = await identity.enrollTotp(caller, admin.password, home)
  t.not(secret, first.secret, 'enrolling again replaces the secret')
  t.match(uri, /^otpauth:\/\/totp\/Busbar:ada%40example\.com\?/)
  t.same(await identity.totpStatus(caller.user.id), {
    enabled: false,
    enabled_at: null,
    recovery_codes_remaining: 0
  })
  t.notOk(JSON.stringify(await database.sql('select * from $schema.totp')).includes(secret))
  await t.resolves(signIn(identity, admin), 'a pending enrollment asks nobody for a code')

  t.equal(
    await refusal(identity.verifyTotp(caller, codeAt(first.secret, clock), home)),
    '401: invalid verification code'
  )
  const verified = await identity.verifyTotp(caller, codeAt(secret, clock), home)
  t.equal(verified.recoveryCodes.length, 10)
  t.equal(new Set(verified.recoveryCodes).size, 10)
  for (const code of verified.recoveryCodes) t.match(code, /^([A-Z2-7]{4}-){3}[A-Z2-7]{4}$/)
  t.equal((await showSession(identity, grant)).kind, 'invalid')
  t.equal((await showSession(identity, other)).kind, 'invalid')
  const renewed = await sessionOf(identity, verified.grant)
  t.same(await identity.totpStatus(caller.user.id), {
    enabled: true,
    enabled_at: clock.now(),
    recovery_codes_remaining: 10
  })
  t.equal(
    await refusal(identity.enrollTotp(renewed, admin.password, home)),
    '409: two-factor authentication is already enabled'
  )
})

test('a login asks for a code and takes each one once', async t => {
  const { identity, clock, secret } = await withFactor(t)
  const { challenge: first, methods, expires_in } = await challenge(identity)
  t.same(methods, ['totp', 'recovery_code'])
  t.equal(expires_in, 300)
  const code = codeAt(secret, clock)
  t.equal(
    await refusal(identity.verifyLogin({ challenge: first, code, method: 'sms' }, home)),
    '400: unsupported verification method: use totp or recovery_code'
  )
  const grant = await identity.verifyLogin({ challenge: first, code }, home)
  t.equal((await showSession(identity, grant)).kind, 'caller')
  t.match(
    await refusal(identity.verifyLogin({ challenge: first, code }, home)),
    /^401: this verification challenge has expired/
  )
  const { challenge: second } = await challenge(identity)
  t.match(
    await refusal(identity.verifyLogin({ challenge: second, code }, home)),
    /^401: that code has already been used/
  )
  t.match(
    await refusal(identity.verifyLogin({ challenge: second, code: codeAt(secret, clock, -30) }, home)),
    /^401: that code has already been used/
  )
  await t.resolves(
    identity.verifyLogin({ challenge: second, code: codeAt(secret, clock, 30) }, home),
    'one step ahead is allowed'
  )
})

test('a code at the same time from two places signs in one', async t => {
  const { identity, clock, secret, start, database } = await withFactor(t)
  const [a, b] = [await challenge(identity), await challenge(identity)]
  const code = codeAt(secret, clock)
  const results = await raceAt(database, 'select 1 from $schema.totp for update', 2, () => [
    identity.verifyLogin({ challenge: a.challenge, code }, home),
    start().verifyLogin({ challenge: b.challenge, code }, elsewhere)
  ])
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const result of results) if (result.status === 'rejected') t.match(result.reason, { status: 401 })
})

test('a code at the same time for two changes makes one', async t => {
  const { identity, clock, secret, start, database, caller } = await withFactor(t)
  const proof = { password: admin.password, code: codeAt(secret, clock) }
  const results = await raceAt(database, 'select 1 from $schema.totp for update', 2, () => [
    identity.regenerateRecoveryCodes(caller, proof, home),
    start().regenerateRecoveryCodes(caller, proof, elsewhere)
  ])
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const result of results)
    if (result.status === 'rejected') t.match(result.reason, { status: 401, code: 'E_TOTP_CODE_REUSED' })
})

test('codes too old or too new are wrong', async t => {
  const { identity, clock, secret } = await withFactor(t)
  const wrong = [codeAt(secret, clock, 60), codeAt(secret, clock, 3600), '', 'abcdef', '12345', '1234567']
  for (const [index, code] of wrong.entries()) {
    const { challenge: open } = await challenge(identity)
    const problem = await problemOf(
      identity.verifyLogin({ challenge: open, code }, { ...home, ip: `192.0.2.${index}` })
    )
    t.match(problem, { status: 401, code: 'E_TOTP_CODE' }, code)
  }
})

test('a challenge has five attempts and five minutes', async t => {
  const { identity, clock, secret } = await withFactor(t)
  const { challenge: guessed } = await challenge(identity)
  for (let i = 0; i < 5; i++) {
    t.equal(
      (
        await problemOf(
          identity.verifyLogin({ challenge: guessed, code: '000000' }, { ...home, ip: `192.0.2.${i}` })
        )
      ).code,
      'E_TOTP_CODE'
    )
  }
  t.equal(
    (await problemOf(identity.verifyLogin({ challenge: guessed, code: codeAt(secret, clock) }, elsewhere)))
      .code,
    'E_AUTH_CHALLENGE'
  )
  const { challenge: late } = await challenge(identity)
  await clock.advance(300_000)
  t.equal(
    (await problemOf(identity.verifyLogin({ challenge: late, code: codeAt(secret, clock) }, elsewhere))).code,
    'E_AUTH_CHALLENGE'
  )
})

test('wrong codes lock out, and the right password in between forgives none', async t => {
  const { identity } = await withFactor(t)
  const statuses: number[] = []
  for (let i = 0; i < 5; i++) {
    const { challenge: open } = await challenge(identity)
    statuses.push((await problemOf(identity.verifyLogin({ challenge: open, code: '000000' }, home))).status)
  }
  t.same(statuses, [401, 401, 401, 401, 429])
  t.equal((await problemOf(identity.login(admin, home))).status, 429)
})

test('a recovery code works once, in whatever writing', async t => {
  const { identity, recoveryCodes, caller } = await withFactor(t)
  const [one = '', two = ''] = recoveryCodes
  const { challenge: first } = await challenge(identity)
  const written = one.toLowerCase().replaceAll('-', ' ')
  await identity.verifyLogin({ challenge: first, code: written, method: 'recovery_code' }, home)
  t.equal((await identity.totpStatus(caller.user.id)).recovery_codes_remaining, 9)
  const { challenge: second } = await challenge(identity)
  t.equal(
    await refusal(identity.verifyLogin({ challenge: second, code: one, method: 'recovery_code' }, home)),
    '401: invalid verification code'
  )
  t.equal(
    await refusal(identity.verifyLogin({ challenge: second, code: two }, home)),
    '401: invalid verification code',
    'it is no TOTP code'
  )
})

test('new recovery codes end the old ones and take password and code', async t => {
  const { identity, clock, secret, recoveryCodes, caller } = await withFactor(t)
  const proof = { password: admin.password, code: codeAt(secret, clock) }
  t.equal(
    await refusal(identity.regenerateRecoveryCodes(caller, { ...proof, password: 'wrong one' }, home)),
    '401: current password is incorrect'
  )
  t.equal(
    await refusal(identity.regenerateRecoveryCodes(caller, { ...proof, code: '000000' }, home)),
    '401: invalid verification code'
  )
  t.match(
    await refusal(identity.regenerateRecoveryCodes(caller, { ...proof, code: '' }, home)),
    /^400: code is required/
  )
  const fresh = await identity.regenerateRecoveryCodes(caller, proof, home)
  t.notOk(fresh.some(code => recoveryCodes.includes(code)))
  const { challenge: open } = await challenge(identity)
  t.equal(
    (
      await problemOf(
        identity.verifyLogin({ challenge: open, code: recoveryCodes[0] ?? '', method: 'recovery_code' }, home)
      )
    ).status,
    401
  )
  await t.resolves(
    identity.verifyLogin({ challenge: open, code: fresh[0] ?? '', method: 'recovery_code' }, home)
  )
})

test('disabling takes password and code, and renews the session', async t => {
  const { identity, recoveryCodes, caller, grant } = await withFactor(t)
  const renewed = await identity.disableTotp(
    caller,
    { password: admin.password, code: recoveryCodes[0] ?? '', method: 'recovery_code' },
    home
  )
  t.equal((await showSession(identity, grant)).kind, 'invalid')
  const plain = await sessionOf(identity, renewed)
  t.same(await identity.totpStatus(plain.user.id), {
    enabled: false,
    enabled_at: null,
    recovery_codes_remaining: 0
  })
  await t.resolves(signIn(identity, admin))
  t.equal(
    await refusal(identity.disableTotp(plain, { password: admin.password, code: '123456' }, home)),
    '409: two-factor authentication is not enabled'
  )
  t.equal(
    await refusal(
      identity.regenerateRecoveryCodes(plain, { password: admin.password, code: '123456' }, home)
    ),
    '409: two-factor authentication is not enabled'
  )
})

test('an admin takes the factor of another away', async t => {
  const { identity, clock } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const bob = { email: 'bob@example.com', password: 'bobs password' }
  const user = await identity.createUser({ ...bob, role: 'member' })
  const enable = async (who: SessionCaller, password: string) => {
    const { secret } = await identity.enrollTotp(who, password, home)
    return { secret, ...(await identity.verifyTotp(who, codeAt(secret, clock), home)) }
  }
  t.equal(
    await refusal(identity.resetTotp(caller, user.id, { password: admin.password }, home)),
    '409: two-factor authentication is not enabled'
  )
  const bobs = await enable((await signIn(identity, bob)).caller, bob.password)
  t.equal(
    await refusal(identity.resetTotp(caller, user.id, { password: 'wrong one' }, home)),
    '401: current password is incorrect'
  )
  const own = await enable(caller, admin.password)
  const now = await sessionOf(identity, own.grant)
  t.match(
    await refusal(identity.resetTotp(now, user.id, { password: admin.password }, home)),
    /^400: code is required/
  )
  await identity.resetTotp(
    now,
    user.id,
    { password: admin.password, code: own.recoveryCodes[0] ?? '', method: 'recovery_code' },
    home
  )
  t.equal((await showSession(identity, bobs.grant)).kind, 'invalid')
  await t.resolves(signIn(identity, bob))
})

test('a password reset ends a login that waits for its code', async t => {
  const { identity, clock, secret, caller } = await withFactor(t)
  const { challenge: open } = await challenge(identity)
  await identity.changePassword(
    caller,
    { currentPassword: admin.password, newPassword: 'a better one' },
    home
  )
  t.equal(
    (await problemOf(identity.verifyLogin({ challenge: open, code: codeAt(secret, clock) }, home))).code,
    'E_AUTH_CHALLENGE'
  )
})
