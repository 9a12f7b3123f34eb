import { test } from 'tap'
import { statementsOf } from '../../../lab/statements.js'
import { addressKey } from '../passwords/lock-out.js'
import { PasswordHasher } from '../passwords/password-hasher.js'
import { lockOutPolicy } from '../policy.js'
import {
  admin,
  elsewhere,
  home,
  identityKit,
  problemOf,
  raceAt,
  refusal,
  showSession,
  signedInAdmin,
  signIn
} from './identity-kit.js'

const wrong = { email: admin.email, password: 'not the password' }

test('a login gives a session with three cookies', async t => {
  const { identity } = await identityKit(t)
  const { grant, caller } = await signedInAdmin(identity)
  t.match(grant.result, { expires_in: 3600, user: { email: admin.email, role: 'admin', username: '' } })
  t.match(grant.result.token, /^busbar_ses_[\w-]{43}$/)
  t.match(grant.result.refresh_token, /^busbar_ref_[\w-]{43}$/)
  const [session, refresh, csrf] = grant.cookies
  t.same(session, {
    name: 'token',
    value: grant.result.token,
    path: '/',
    httpOnly: true,
    maxAgeSeconds: 3600
  })
  t.same(refresh, {
    name: 'refresh_token',
    value: grant.result.refresh_token,
    path: '/api/auth',
    httpOnly: true,
    maxAgeSeconds: 604_800
  })
  t.match(csrf, {
    name: 'csrf_token',
    value: /^[0-9a-f]{64}$/,
    path: '/',
    httpOnly: false,
    maxAgeSeconds: 604_800
  })
  t.match(caller, {
    kind: 'session',
    sessionId: grant.sessionId,
    user: { email: admin.email, role: 'admin' }
  })
})

test('the address is compared without regard to case', async t => {
  const { identity } = await identityKit(t)
  await identity.setUp(admin)
  await t.resolves(signIn(identity, { ...admin, email: ' ADA@example.COM' }))
})

test('an unknown address and a wrong password get the same words', async t => {
  const { identity } = await identityKit(t)
  await identity.setUp(admin)
  const unknown = await problemOf(
    identity.login({ email: 'bob@example.com', password: 'whatever it is' }, home)
  )
  const known = await problemOf(identity.login(wrong, home))
  t.same([unknown.status, unknown.code, unknown.message], [known.status, known.code, known.message])
  t.equal(known.status, 401)
  t.equal(
    await refusal(identity.login({ email: admin.email, password: 'x'.repeat(4000) }, home)),
    `401: ${known.message}`
  )
})

test('an unknown address makes the same work as a wrong password', async t => {
  const { identity, argon } = await identityKit(t)
  await identity.setUp(admin)
  const works: Record<string, unknown[]> = { known: [], unknown: [] }
  for (const [kind, email, i] of [
    ['known', admin.email, 0],
    ['unknown', 'bob@example.com', 1],
    ['unknown', 'bob@example.com', 2],
    ['known', admin.email, 3]
  ] as const) {
    const before = { ...argon }
    const statements = await statementsOf(async () => {
      await problemOf(identity.login({ email, password: wrong.password }, { ...home, ip: `192.0.2.${i}` }))
    })
    works[kind]?.push({
      hashes: argon.hashes - before.hashes,
      verifications: argon.verifications - before.verifications,
      statements
    })
  }
  const [first, later] = works.known ?? []
  t.match(later, { hashes: 0, verifications: 1 })
  t.ok((later as { statements: string[] }).statements.length >= 2, JSON.stringify(later))
  t.same(works.unknown, [later, later], 'one verification and the same statements')
  t.match(
    first,
    { hashes: 1, verifications: 1 },
    'and the first login after a start makes what the unknown ones need'
  )
})

test('the decoy costs what a password costs', async t => {
  const seen: unknown[] = []
  const hasher = new PasswordHasher({
    hash: async (_password, cost) => {
      seen.push(cost)
      return ''
    },
    verify: async () => true
  })
  await hasher.hash('a password')
  t.equal(await hasher.verify(undefined, 'whatever'), false, 'and nobody gets in with it')
  t.equal(seen.length, 2)
  t.same(seen[0], seen[1])
})

test('nothing of a secret is stored in clear', async t => {
  const { identity, database } = await identityKit(t)
  const { grant, caller } = await signedInAdmin(identity)
  const { value } = await identity.createToken(caller, {
    name: 'ci',
    scope: 'read',
    expiresInDays: null,
    projectIds: []
  })
  const stored = JSON.stringify(
    await Promise.all(
      ['user', 'session', 'refresh_secret', 'access_token'].map(table =>
        database.sql(`select * from $schema.${table}`)
      )
    )
  )
  for (const secret of [admin.password, grant.result.token, grant.result.refresh_token, value])
    t.notOk(stored.includes(secret))
  t.ok(stored.includes('$argon2id$v=19$m=19456,t=2,p=1$'))
})

test('five failures lock the account for the address they come from, and for no other', async t => {
  const { identity, clock } = await identityKit(t)
  await identity.setUp(admin)
  for (let i = 0; i < 4; i++) t.equal((await problemOf(identity.login(wrong, home))).status, 401)
  const fifth = await problemOf(identity.login(wrong, home))
  t.match(fifth, {
    status: 429,
    code: 'E_AUTH_LOCKED',
    details: { retry_after: 900 },
    headers: { 'retry-after': '900' }
  })
  await clock.advance(60_000)
  const sixth = await problemOf(identity.login(admin, home))
  t.match(sixth, { status: 429, details: { retry_after: 840 } }, 'the right password does not help')
  await t.resolves(signIn(identity, admin, elsewhere), 'a stranger locks nobody out')
  await clock.advance(840_000)
  await t.resolves(signIn(identity, admin, home))
})

test('a success resets the count, and failures from long ago do not count', async t => {
  const { identity, clock } = await identityKit(t)
  await identity.setUp(admin)
  const fail = async (times: number) => {
    for (let i = 0; i < times; i++) t.equal((await problemOf(identity.login(wrong, home))).status, 401)
  }
  await fail(4)
  await signIn(identity, admin)
  await fail(4)
  await clock.advance(lockOutPolicy.windowMs)
  await fail(4)
})

test('an unknown account is locked as well, so that the lock tells nothing', async t => {
  const { identity } = await identityKit(t)
  const nobody = { email: 'nobody@example.com', password: 'whatever it is' }
  for (let i = 0; i < 4; i++) t.equal((await problemOf(identity.login(nobody, home))).status, 401)
  t.equal((await problemOf(identity.login(nobody, home))).status, 429)
})

test('attempts at the same time get five tries together', async t => {
  const { identity, start } = await identityKit(t)
  await identity.setUp(admin)
  const other = start()
  const problems = await Promise.all(
    Array.from({ length: 30 }, async (_, i) => await problemOf((i % 2 ? identity : other).login(wrong, home)))
  )
  t.equal(problems.filter(({ status }) => status === 401).length, 4)
  t.equal(problems.filter(({ status }) => status === 429).length, 26)
})

test('a failure of the database is no failed attempt', async t => {
  const { identity, database } = await identityKit(t)
  await identity.setUp(admin)
  await database.sql('alter table $schema.session rename to gone')
  for (let i = 0; i < 6; i++) await t.rejects(identity.login(admin, home), { code: '42P01' })
  await database.sql('alter table $schema.gone rename to session')
  await t.resolves(signIn(identity, admin))
})

test('a password that is changed while it is checked signs nobody in', async t => {
  const { identity, database } = await identityKit(t)
  await identity.setUp(admin)
  const [result] = await raceAt(database, "update $schema.user set password_hash = 'changed'", 1, () => [
    identity.login(admin, home)
  ])
  t.match(result, { status: 'rejected', reason: { status: 401 } })
})

test('a session ends with its secret, and with the user', async t => {
  const { identity, clock } = await identityKit(t, { JWT_EXPIRY_HOURS: '0.5' })
  const { grant } = await signedInAdmin(identity)
  t.equal(grant.result.expires_in, 1800)
  await clock.advance(1_799_000)
  t.equal((await showSession(identity, grant)).kind, 'caller')
  await clock.advance(1000)
  t.equal((await showSession(identity, grant)).kind, 'invalid')
  t.equal((await showSession(identity, grant)).kind, 'invalid')
})

test('an IPv6 address counts with its network', async t => {
  t.equal(addressKey('203.0.113.9'), '203.0.113.9')
  t.equal(addressKey('::ffff:203.0.113.9'), '203.0.113.9')
  t.equal(addressKey('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  t.equal(addressKey('2001:0DB8:0001:2::9'), '2001:db8:1:2::/64')
  t.equal(addressKey('fe80::1%eth0'), 'fe80:0:0:0::/64')
  t.equal(addressKey('::1'), '0:0:0:0::/64')
})
