import { getEventListeners, once } from 'node:events'
import { withTimeLimit } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { collectRepeatedly } from '../../lab/garbage.js'

/** What goes on until its signal ends it, with the signal's reason. */
async function endless(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason as Error
}
const forever = new AbortController().signal

test('work that ends in time is waited for, and so is what fails', async t => {
  t.equal(await withTimeLimit({ signal: forever, ms: 60_000 }, async () => 'done'), 'done')
  await t.rejects(
    withTimeLimit({ signal: forever, ms: 60_000 }, async () => {
      throw new Error('no')
    }),
    { message: 'no' }
  )
})

test('a time limit holds through every garbage collection', async t => {
  t.teardown(collectRepeatedly())
  let ended: unknown
  void withTimeLimit({ signal: forever, ms: 1000 }, endless).catch((error: unknown) => {
    ended = error
  })
  t.match(await until(() => ended, 'the work ends'), { message: 'it took longer than 1 s' })
})

test('the time is that of the clock given, and the reason too', async t => {
  const clock = testClock()
  const late = new Error('the build took longer than 30 minutes')
  let ended: unknown
  void withTimeLimit({ ms: 30 * 60_000, clock, reason: () => late }, endless).catch((error: unknown) => {
    ended = error
  })
  await clock.advance(30 * 60_000 - 1)
  t.equal(ended, undefined)
  await clock.advance(1)
  t.equal(ended, late)
})

test('an abort ends the work with its own reason, and nothing is left of what has ended', async t => {
  const abort = new AbortController()
  const clock = testClock()
  let given: AbortSignal | undefined
  const work = withTimeLimit({ signal: abort.signal, ms: 1000, clock }, async signal => {
    given = signal
    await endless(signal)
  })
  abort.abort(new Error('cancelled'))
  await t.rejects(work, { message: 'cancelled' })

  const lasting = new AbortController()
  await withTimeLimit({ signal: lasting.signal, ms: 1000, clock }, async signal => {
    given = signal
    t.equal(getEventListeners(lasting.signal, 'abort').length, 1)
  })
  t.same(getEventListeners(lasting.signal, 'abort'), [])
  await clock.advance(2000)
  t.notOk(given?.aborted)
})
