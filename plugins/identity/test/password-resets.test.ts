import { test } from 'tap'
import { admin, home, identityKit, refusal, signedInAdmin, signIn } from './identity-kit.js'

const next = 'a new password'
const minuteMs = 60_000

async function kit(t: Parameters<typeof identityKit>[0]) {
  const { identity, database, clock } = await identityKit(t)
  const { caller } = await signedInAdmin(identity)
  const open = async (email: string = admin.email) =>
    await database.transaction(async tx => await identity.openPasswordReset(email, tx))
  const complete = async (secret: string | undefined) =>
    await identity.completePasswordReset({ secret: secret ?? '', newPassword: next }, home)
  return { identity, clock, caller, open, complete }
}

test('a reset link works for half an hour', async t => {
  const { identity, clock, caller, open, complete } = await kit(t)
  const late = await open()
  t.equal((late?.expiresAt.getTime() ?? 0) - clock.now().getTime(), 30 * minuteMs)
  await clock.advance(30 * minuteMs)
  t.equal(await refusal(complete(late?.secret)), '400: reset token has expired')
  const inTime = await open()
  await clock.advance(30 * minuteMs - 1)
  t.equal(await complete(inTime?.secret), caller.user.id)
  await t.resolves(signIn(identity, { ...admin, password: next }))
})

test('an address is given three links within any hour', async t => {
  const { clock, open, complete } = await kit(t)
  for (let n = 0; n < 3; n++) {
    t.ok(await open(' ADA@example.com'))
    await clock.advance(minuteMs)
  }
  t.equal(await open(), undefined)
  await clock.advance(57 * minuteMs - 1)
  t.equal(await open(), undefined)
  await clock.advance(1)
  const fourth = await open()
  t.ok(fourth, 'an hour after the first')
  t.equal(await open(), undefined, 'and one more only')
  await complete(fourth?.secret)
})

test('nobody is given a link for an address that nobody has', async t => {
  const { open } = await kit(t)
  t.equal(await open('eve@example.com'), undefined)
  t.equal(await open('nonsense'), undefined)
})

test('many who ask at the same time are given three links together, of which one works', async t => {
  const { open, complete } = await kit(t)
  const links = (await Promise.all(Array.from({ length: 8 }, async () => await open()))).filter(
    link => link !== undefined
  )
  t.equal(links.length, 3)
  const outcomes = await Promise.allSettled(links.map(async ({ secret }) => await complete(secret)))
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
})
