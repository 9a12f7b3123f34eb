import { generateSync } from 'otplib'
import { type Test, test } from 'tap'
import type { Client, SessionGrant } from '../api.js'
import { lockOutPolicy, unknownDevicesPolicy } from '../policy.js'
import { admin, elsewhere, home, identityKit, problemOf, signedInAdmin, signIn } from './identity-kit.js'

const wrong = { ...admin, password: 'not the password' }

/** A browser that kept the cookies of a sign-in; its sessions may have ended long ago. */
const browserOf = ({ cookies }: SessionGrant, client: Client): Client => ({
  ...client,
  cookies: `theme=dark; ${cookies.map(({ name, value }) => `${name}=${value}`).join('; ')}`
})

async function withFactor(t: Test) {
  const kit = await identityKit(t)
  const { identity, clock } = kit
  const { caller, grant } = await signedInAdmin(identity)
  const { secret } = await identity.enrollTotp(caller, admin.password, home)
  const code = (): string => generateSync({ secret, epoch: Math.floor(clock.now().getTime() / 1000) })
  const verified = await identity.verifyTotp(caller, code(), home)
  await clock.advance(60_000)
  const challenge = async (client: Client): Promise<string> => {
    const outcome = await identity.login(admin, client)
    if (outcome.kind !== 'challenged') throw new Error('no second factor was asked for')
    return outcome.challenge.challenge
  }
  return { ...kit, code, challenge, browser: browserOf(grant, home), grant: verified.grant }
}

test('who fails at the address of somebody does not lock their known device out', async t => {
  const { identity } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  const browser = browserOf(grant, home)
  for (let n = 0; n < 8; n++) await problemOf(identity.login(wrong, home))
  t.equal(
    (await problemOf(identity.login(admin, home))).status,
    429,
    'an unknown device at this address waits'
  )
  const { grant: again } = await signIn(identity, admin, browser)
  t.notOk(
    again.cookies.some(({ name }) => name === 'known_device'),
    'it is known already'
  )
  await t.resolves(signIn(identity, admin, browser))
})

test('a known device is locked by its own failures, and only it', async t => {
  const { identity, clock } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  const browser = browserOf(grant, home)
  for (let n = 0; n < 4; n++)
    t.equal((await problemOf(identity.login(wrong, { ...browser, ip: `192.0.2.${n}` }))).status, 401)
  t.equal((await problemOf(identity.login(wrong, browser))).status, 429, 'whatever address it has')
  t.equal((await problemOf(identity.login(admin, browser))).status, 429)
  await t.resolves(signIn(identity, admin, home))
  await clock.advance(lockOutPolicy.windowMs)
  await t.resolves(signIn(identity, admin, browser))
})

test('a device is known to the account that it signed in to, for a year, and cannot be made up', async t => {
  const { identity, clock } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  const bob = { email: 'bob@example.com', password: 'another good one' }
  await identity.createUser({ ...bob, role: 'member' })
  const cookie = grant.cookies.find(({ name }) => name === 'known_device')
  t.match(cookie, {
    value: /^busbar_dev_b1\.[\w.-]+$/,
    path: '/api/auth',
    httpOnly: true,
    maxAgeSeconds: 31_536_000
  })
  const value = cookie?.value ?? ''
  const isKnown = async (account: typeof admin, cookies: string): Promise<boolean> => {
    const client = { ...elsewhere, cookies }
    return !(await signIn(identity, account, client)).grant.cookies.some(
      ({ name }) => name === 'known_device'
    )
  }
  t.ok(await isKnown(admin, `known_device=${value}`))
  t.notOk(await isKnown(bob, `known_device=${value}`))
  for (const forged of [
    '',
    'busbar_dev_',
    'busbar_dev_b1.k.a.b',
    `${value.slice(0, -2)}xx`,
    value.replace('busbar_dev_', '')
  ]) {
    t.notOk(await isKnown(admin, `known_device=${forged}`), forged)
  }
  await clock.advance(365 * 24 * 3_600_000)
  t.notOk(await isKnown(admin, `known_device=${value}`))
})

test('anonymous failures from a shared address lock neither the second factor of somebody nor what they do signed in', async t => {
  const { identity, code, challenge, browser, grant, clock } = await withFactor(t)
  const open = await challenge(home)
  for (let n = 0; n < 8; n++) await problemOf(identity.login(wrong, home))
  await t.resolves(
    identity.verifyLogin({ challenge: open, code: code() }, home),
    'a code is right or wrong, whoever guesses passwords here'
  )
  await clock.advance(60_000)
  await t.resolves(challenge(browser))
  const found = await identity.authenticate({
    authorization: undefined,
    cookie: `token=${grant.result.token}`
  })
  if (found.kind !== 'caller' || found.caller.kind !== 'session') throw new Error('no session')
  await t.resolves(
    identity.regenerateRecoveryCodes(found.caller, { password: admin.password, code: code() }, home)
  )
})

test('who has the password and many addresses gets twenty codes a day, and the known device of its owner still signs in', async t => {
  const { identity, clock, code, challenge, browser } = await withFactor(t)
  const guesses: number[] = []
  for (let n = 0; n < unknownDevicesPolicy.attempts + 5; n++) {
    const client = { ip: `198.51.100.${n}`, userAgent: 'curl' }
    const open = await challenge(client).catch(() => undefined)
    guesses.push(
      open === undefined
        ? 429
        : (await problemOf(identity.verifyLogin({ challenge: open, code: '000000' }, client))).status
    )
  }
  t.same(guesses, [
    ...Array<number>(unknownDevicesPolicy.attempts - 1).fill(401),
    ...Array<number>(6).fill(429)
  ])
  t.equal((await problemOf(identity.login(admin, elsewhere))).status, 429, 'no new challenge either')
  t.equal(
    (await problemOf(identity.verifyLogin({ challenge: await challenge(browser), code: '000000' }, browser)))
      .code,
    'E_TOTP_CODE'
  )
  await t.resolves(identity.verifyLogin({ challenge: await challenge(browser), code: code() }, browser))
  await clock.advance(unknownDevicesPolicy.windowMs)
  await t.resolves(identity.verifyLogin({ challenge: await challenge(elsewhere), code: code() }, elsewhere))
})

test('a session that guesses is locked, and no other session of the user with it', async t => {
  const { identity } = await identityKit(t)
  const { caller: stolen } = await signedInAdmin(identity)
  const { caller: own } = await signIn(identity, admin, home)
  const change = { currentPassword: 'not it', newPassword: 'another good one' }
  for (let n = 0; n < 4; n++)
    t.equal((await problemOf(identity.changePassword(stolen, change, home))).status, 401)
  t.equal((await problemOf(identity.changePassword(stolen, change, elsewhere))).status, 429, 'from wherever')
  t.equal((await problemOf(identity.enrollTotp(stolen, admin.password, home))).status, 429)
  await t.resolves(identity.changePassword(own, { ...change, currentPassword: admin.password }, home))
})

test('the failure that locks begins the window anew, and those after it do not', async t => {
  const { identity, clock } = await identityKit(t)
  await identity.setUp(admin)
  for (let n = 0; n < 4; n++) await problemOf(identity.login(wrong, home))
  await clock.advance(lockOutPolicy.windowMs - 1_000)
  t.match(
    await problemOf(identity.login(wrong, home)),
    { status: 429, details: { retry_after: 900 } },
    'the fifth, a second before the first would be forgotten'
  )
  await clock.advance(600_000)
  t.match(
    await problemOf(identity.login(wrong, home)),
    { status: 429, details: { retry_after: 300 } },
    'trying on does not keep the owner out for longer'
  )
  await clock.advance(300_000)
  await t.resolves(signIn(identity, admin, home))
})

test('attempts that end in an error leave no row behind', async t => {
  const { identity, database } = await identityKit(t)
  await identity.setUp(admin)
  await database.sql('alter table $schema.session rename to gone')
  await t.rejects(identity.login(admin, home))
  t.same(await database.sql('select * from $schema.lock_out'), [])
  await database.sql('alter table $schema.gone rename to session')
})
