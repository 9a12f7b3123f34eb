import { test } from 'tap'
import { authKit, sessionOf, tokenOf } from './auth-kit.js'

test('a credential is looked up once, and the same answer is given from then on', async t => {
  const { authenticate, issue, asked } = authKit()
  const shown = issue(tokenOf('t'))
  await Promise.all(Array.from({ length: 50 }, async () => await authenticate(shown)))
  const first = await authenticate(shown)
  for (let i = 0; i < 1000; i++) await authenticate(shown)
  t.equal(await authenticate(shown), first)
  t.same(asked, ['token'], 'fifty at the same time and a thousand in a row are one question')
})

test('a look-up that takes too long is answered 503, as is one that cannot be made', async t => {
  const { authenticate, issue, plugged } = authKit({ findLimitMs: 20 })
  const shown = issue(tokenOf('t'))
  const usual = plugged.source
  plugged.source = { ...(usual as NonNullable<typeof usual>), find: async () => await new Promise(() => {}) }
  await t.rejects(async () => await authenticate(shown), {
    status: 503,
    code: 'E_AUTH_UNAVAILABLE',
    message: /took longer than 0\.02 s: try again/
  })
  plugged.source = undefined
  await t.rejects(async () => await authenticate(shown), { status: 503, code: 'E_AUTH_UNAVAILABLE' })
  plugged.source = usual
  t.equal((await authenticate(shown)).kind, 'caller', 'and then it is known')
})

test('a Bearer header decides alone', async t => {
  const { authenticate, issue } = authKit()
  const { authorization: bearer = '' } = issue(tokenOf('t'))
  const { cookie = '' } = issue(sessionOf('s'))
  const kindOf = async (authorization: string | undefined, cookie?: string) =>
    (await authenticate({ authorization, cookie })).kind
  t.equal(await kindOf(bearer, cookie), 'caller')
  t.equal(await kindOf(bearer.replace('Bearer', 'bearer')), 'caller')
  t.equal(await kindOf(`Bearer busbar_pat_${'a'.repeat(43)}`, cookie), 'invalid')
  t.equal(await kindOf(cookie.replace('theme=dark; token=', 'Bearer ')), 'invalid', 'a session is no token')
  t.equal(await kindOf('Bearer ', cookie), 'invalid')
  t.equal(await kindOf('Basic YTpi', cookie), 'caller')
  t.equal(await kindOf(undefined, bearer.replace('Bearer ', 'token=')), 'invalid', 'a token is no session')
  t.equal(await kindOf(undefined, undefined), 'missing')
  t.equal(await kindOf(undefined, 'token='), 'missing')
})

test('what nobody knows is asked for once in ten seconds, and what has not the form never', async t => {
  const { authenticate, clock, asked } = authKit()
  const bad = { authorization: `Bearer busbar_pat_${'x'.repeat(43)}`, cookie: undefined }
  for (let i = 0; i < 100; i++) t.equal((await authenticate(bad)).kind, 'invalid')
  t.equal(asked.length, 1)
  await clock.advance(10_000)
  await authenticate(bad)
  t.equal(asked.length, 2)
  await authenticate({ authorization: 'Bearer busbar_pat_short', cookie: undefined })
  t.equal(asked.length, 2)
})

test('of what nobody knows no more than a thousand are remembered', async t => {
  const { authenticate, asked } = authKit()
  const show = async (n: number): Promise<number> => {
    const value = `busbar_pat_${String(n).padStart(43, 'x')}`
    t.equal((await authenticate({ authorization: `Bearer ${value}`, cookie: undefined })).kind, 'invalid')
    return asked.length
  }
  for (let n = 1; n <= 1000; n++) await show(n)
  t.equal(await show(1), 1000, 'the first of a thousand is not asked for again')
  t.equal(await show(1001), 1001)
  t.equal(await show(1), 1002, 'one more, and it was forgotten')
})

test('what is unknown is asked for again after ten seconds, whatever the clock of the machine is set to', async t => {
  const { authenticate, asked, clock } = authKit()
  const show = async (): Promise<number> => {
    await authenticate({ authorization: `Bearer busbar_pat_${'x'.repeat(43)}`, cookie: undefined })
    return asked.length
  }
  t.equal(await show(), 1)
  clock.set(3_600_000)
  t.equal(await show(), 1)
  clock.set(-7_200_000)
  await clock.advance(10_000)
  t.equal(await show(), 2)
})

test('a credential expires by the clock while it is remembered', async t => {
  const { authenticate, clock, issue } = authKit()
  const shown = issue(tokenOf('t', { expiresAt: new Date(clock.now().getTime() + 1000) }))
  t.equal((await authenticate(shown)).kind, 'caller')
  await clock.advance(999)
  t.equal((await authenticate(shown)).kind, 'caller')
  await clock.advance(1)
  t.equal((await authenticate(shown)).kind, 'invalid')
})

test("a use is passed on at most every five minutes, and a failure of that is nobody's problem", async t => {
  const { authenticate, clock, issue, uses, plugged } = authKit()
  const shown = issue(tokenOf('t'))
  const first = clock.now().getTime()
  await authenticate(shown)
  await clock.advance(299_999)
  for (let i = 0; i < 10; i++) await authenticate(shown)
  t.same(uses, [{ at: first, recent: first - 300_000 }])
  await clock.advance(1)
  await authenticate(shown)
  t.equal(uses.length, 2)
  const { source } = plugged
  plugged.source =
    source === undefined
      ? undefined
      : {
          ...source,
          used: async () => {
            throw new Error('no database')
          }
        }
  await clock.advance(300_000)
  t.equal((await authenticate(shown)).kind, 'caller')
})

test('while nobody can say, a credential is not bad, and what is known goes on', async t => {
  const { authenticate, issue, plugged } = authKit()
  const [known, fresh] = [issue(tokenOf('known')), issue(tokenOf('fresh'))]
  await authenticate(known)
  const { source } = plugged
  plugged.source = undefined
  await t.rejects(async () => await authenticate(fresh), {
    status: 503,
    code: 'E_AUTH_UNAVAILABLE',
    message: /the plugin "identity" is off/
  })
  plugged.source = {
    find: async () => {
      throw new Error('connection refused')
    },
    current: async () => undefined
  }
  await t.rejects(async () => await authenticate(fresh), { message: 'connection refused' })
  t.equal((await authenticate(known)).kind, 'caller')
  plugged.source = source
  t.equal((await authenticate(fresh)).kind, 'caller', 'and the failure is not remembered')
})
