import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import {
  admin,
  elsewhere,
  home,
  identityKit,
  showSession,
  showToken,
  signedInAdmin,
  signIn
} from './identity-kit.js'

const token = { name: 'ci', scope: 'read', expiresInDays: null, projectIds: [] } as const

test('a credential is looked up once, and the same frozen caller is returned from then on', async t => {
  const { identity, queries, start } = await identityKit(t)
  const { grant, caller } = await signedInAdmin(identity)
  const { value } = await identity.createToken(caller, token)
  const other = start()
  queries.hot = 0
  await Promise.all(Array.from({ length: 50 }, async () => await showToken(other, value)))
  const first = await showToken(other, value)
  for (let i = 0; i < 1000; i++) await showToken(other, value)
  t.equal(queries.hot, 1, 'fifty at the same time and a thousand in a row are one query')
  if (first.kind !== 'caller') throw new Error(first.kind)
  t.equal(await showToken(other, value), first)
  t.ok(Object.isFrozen(first.caller) && Object.isFrozen(first.caller.user))
  for (let i = 0; i < 100; i++) await showSession(other, grant)
  t.equal(queries.hot, 2)
})

test('a Bearer header decides alone', async t => {
  const { identity } = await identityKit(t)
  const { grant, caller } = await signedInAdmin(identity)
  const { value } = await identity.createToken(caller, token)
  const cookie = `token=${grant.result.token}`
  const kindOf = async (authorization: string | undefined, cookie?: string) =>
    (await identity.authenticate({ authorization, cookie })).kind
  t.equal(await kindOf(`Bearer ${value}`, cookie), 'caller')
  t.equal(await kindOf(`bearer ${value}`), 'caller')
  t.equal(await kindOf(`Bearer busbar_pat_${'a'.repeat(43)}`, cookie), 'invalid')
  t.equal(await kindOf(`Bearer ${grant.result.token}`, cookie), 'invalid', 'a session is no token')
  t.equal(await kindOf('Bearer', cookie), 'invalid')
  t.equal(await kindOf('Bearer ', cookie), 'invalid')
  t.equal(await kindOf('Basic YTpi', cookie), 'caller')
  t.equal(await kindOf(undefined, `token=${value}`), 'invalid', 'a token is no session')
  t.equal(await kindOf(undefined, undefined), 'missing')
  t.equal(await kindOf(undefined, 'theme=dark; xtoken=1'), 'missing')
  t.equal(await kindOf(undefined, 'token='), 'missing')
})

test('nothing keeps what nobody knows', async t => {
  const { identity, queries, clock } = await identityKit(t)
  const bad = `busbar_pat_${'x'.repeat(43)}`
  for (let i = 0; i < 100; i++) t.equal((await showToken(identity, bad)).kind, 'invalid')
  t.equal(queries.hot, 1, 'a client that repeats a dead token costs one query in ten seconds')
  await clock.advance(10_000)
  await showToken(identity, bad)
  t.equal(queries.hot, 2)
  await showToken(identity, 'busbar_pat_short')
  t.equal(queries.hot, 2, 'what has not the form of a token costs none')
})

test('a deleted token, an ended session and a logout count at once, here and elsewhere', async t => {
  const { identity, start } = await identityKit(t)
  const other = start()
  const { grant, caller } = await signedInAdmin(identity)
  const { row, value } = await identity.createToken(caller, token)
  for (const one of [identity, other]) {
    t.equal((await showToken(one, value)).kind, 'caller')
    t.equal((await showSession(one, grant)).kind, 'caller')
  }
  t.equal(await identity.deleteToken(caller.user.id, row.id), true)
  await other.endSession(caller.user.id, caller.sessionId)
  for (const one of [identity, other]) {
    t.equal((await showToken(one, value)).kind, 'invalid')
    t.equal((await showSession(one, grant)).kind, 'invalid')
  }
})

test('after a gap in the messages everything is read again', async t => {
  const { identity, start, wire, queries } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const { row, value } = await identity.createToken(caller, token)
  const other = start()
  await showToken(other, value)
  wire.removeAllListeners('credentials')
  await identity.deleteToken(caller.user.id, row.id)
  t.equal((await showToken(other, value)).kind, 'caller', 'it cannot know')
  wire.emit('reconnect')
  queries.hot = 0
  t.equal((await showToken(other, value)).kind, 'invalid')
  t.equal(queries.hot, 1)
})

test('a database that fails is not a bad credential', async t => {
  const { identity, queries } = await identityKit(t)
  const { caller, grant } = await signedInAdmin(identity)
  const { value } = await identity.createToken(caller, token)
  queries.fail = new Error('connection refused')
  await t.rejects(showToken(identity, value), { message: 'connection refused' })
  t.equal((await showSession(identity, grant)).kind, 'caller', 'what is known goes on')
  queries.fail = undefined
  t.equal((await showToken(identity, value)).kind, 'caller', 'and the failure is not remembered')
})

test('a token expires by the clock while it is cached', async t => {
  const { identity, clock } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const { row, value } = await identity.createToken(caller, { ...token, expiresInDays: 1 })
  t.equal(row.expires_at?.getTime(), clock.now().getTime() + 86_400_000)
  t.equal((await showToken(identity, value)).kind, 'caller')
  await clock.advance(86_400_000 - 1)
  t.equal((await showToken(identity, value)).kind, 'caller')
  await clock.advance(1)
  t.equal((await showToken(identity, value)).kind, 'invalid')
})

test('the last use is written at most every five minutes', async t => {
  const { identity, clock, queries } = await identityKit(t)
  const { caller, grant } = await signedInAdmin(identity)
  const { value } = await identity.createToken(caller, token)
  const lastUse = async () => {
    await new Promise(resolve => setTimeout(resolve, 100))
    return (
      await identity.listTokens(caller.user.id, { limit: 1, offset: 0 })
    ).rows[0]?.last_used_at?.getTime()
  }
  t.equal(await lastUse(), undefined)
  const first = clock.now().getTime()
  await showToken(identity, value)
  t.equal(await lastUse(), first)
  await clock.advance(299_999)
  for (let i = 0; i < 10; i++) await showToken(identity, value)
  t.equal(await lastUse(), first)
  t.equal(queries.touches, 1)
  await clock.advance(1)
  await showToken(identity, value)
  await showSession(identity, grant)
  // They are written behind the answers.
  const isWritten = (time: Date | null | undefined): boolean => time?.getTime() === first + 300_000
  await until(async () => (await lastUse()) === first + 300_000, 'the use of the token')
  await until(
    async () => isWritten((await identity.findUser(caller.user.id))?.last_active_at),
    'the use by the user'
  )
  await until(
    async () => isWritten((await identity.listSessions(caller.user.id))[0]?.last_used_at),
    'the use of the session'
  )
})

test('a sign-in from another place is a session of its own', async t => {
  const { identity } = await identityKit(t)
  const { grant } = await signedInAdmin(identity, home)
  const { grant: second } = await signIn(identity, admin, elsewhere)
  t.not(grant.sessionId, second.sessionId)
  t.equal((await showSession(identity, grant)).kind, 'caller')
})
