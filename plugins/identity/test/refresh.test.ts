import { test } from 'tap'
import {
  admin,
  elsewhere,
  home,
  identityKit,
  refreshHeaders,
  refusal,
  showSession,
  signedInAdmin,
  signIn
} from './identity-kit.js'

test('a refresh gives new secrets, and the old ones stop working', async t => {
  const { identity, clock } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  await clock.advance(1000)
  const renewed = await identity.refresh(refreshHeaders(grant), home)
  if (renewed === undefined) throw new Error('refused')
  t.equal(renewed.sessionId, grant.sessionId)
  t.not(renewed.result.token, grant.result.token)
  t.not(renewed.result.refresh_token, grant.result.refresh_token)
  t.not(refreshHeaders(renewed)['x-csrf-token'], refreshHeaders(grant)['x-csrf-token'])
  t.equal((await showSession(identity, renewed)).kind, 'caller')
  t.equal((await showSession(identity, grant)).kind, 'invalid')
})

test('a refresh secret that is shown twice ends its session and no other', async t => {
  const { identity } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  const { grant: otherBrowser } = await signIn(identity, admin, elsewhere)
  const renewed = await identity.refresh(refreshHeaders(grant), home)
  if (renewed === undefined) throw new Error('refused')
  t.equal((await showSession(identity, renewed)).kind, 'caller')

  t.equal(await identity.refresh(refreshHeaders(grant), elsewhere), undefined)
  t.equal((await showSession(identity, renewed)).kind, 'invalid')
  t.equal(await identity.refresh(refreshHeaders(renewed), home), undefined)
  t.equal((await showSession(identity, otherBrowser)).kind, 'caller')
})

test('of two refreshes at the same time one is served, and the session has ended', async t => {
  const { identity, start } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  const other = start()
  const results = await Promise.all(
    [identity, other, identity, other].map(async one => await one.refresh(refreshHeaders(grant), home))
  )
  const served = results.filter(result => result !== undefined)
  t.equal(served.length, 1)
  for (const result of served) t.equal((await showSession(identity, result)).kind, 'invalid')
})

test('a refresh needs the CSRF token', async t => {
  const { identity } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  const { cookie } = refreshHeaders(grant)
  t.equal(await refusal(identity.refresh({ cookie }, home)), '403: missing csrf token')
  t.equal(
    await refusal(identity.refresh({ cookie, 'x-csrf-token': 'f'.repeat(64) }, home)),
    '403: invalid csrf token'
  )
  t.equal(await refusal(identity.refresh({ cookie, 'x-csrf-token': 'f' }, home)), '403: invalid csrf token')
  t.ok(await identity.refresh(refreshHeaders(grant), home), 'the refused tries have spent nothing')
})

test('a refresh secret works for a week', async t => {
  const { identity, clock } = await identityKit(t)
  const { grant } = await signedInAdmin(identity)
  await clock.advance(168 * 3_600_000 - 1)
  const renewed = await identity.refresh(refreshHeaders(grant), home)
  if (renewed === undefined) throw new Error('refused')
  await clock.advance(168 * 3_600_000)
  t.equal(await identity.refresh(refreshHeaders(renewed), home), undefined)
  t.equal(
    await identity.refresh(
      { cookie: 'csrf_token=a; refresh_token=busbar_ref_nonsense', 'x-csrf-token': 'a' },
      home
    ),
    undefined
  )
})

test('sessions are listed and ended by their owner', async t => {
  const { identity, clock, database } = await identityKit(t)
  const { grant, caller } = await signedInAdmin(identity)
  await clock.advance(1000)
  const { grant: second } = await signIn(identity, admin, elsewhere)
  const rows = await identity.listSessions(caller.user.id)
  t.match(rows, [
    { id: second.sessionId, ip_address: elsewhere.ip, user_agent: 'curl' },
    { id: grant.sessionId, ip_address: home.ip, user_agent: 'Firefox' }
  ])
  t.equal(
    await identity.endSession('00000000-0000-4000-8000-000000000000', second.sessionId),
    false,
    'not by somebody else'
  )
  t.equal(await identity.endSession(caller.user.id, second.sessionId), true)
  t.equal((await showSession(identity, second)).kind, 'invalid')
  t.equal((await showSession(identity, grant)).kind, 'caller')

  await clock.advance(169 * 3_600_000)
  t.same(await identity.listSessions(caller.user.id), [])
  await signIn(identity, admin)
  t.equal(
    (await database.sql('select id from $schema.session')).length,
    1,
    'expired ones are swept at the next sign-in'
  )
})
