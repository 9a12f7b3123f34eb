import { type Lease, leaseMs, Wakeable, withLease } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'

/** As a row has it that all processes see. */
function row() {
  let held: { by: string; until: Date } | null = null
  const of = (by: string): Lease => ({
    take: async ({ now, until }) => {
      if (held !== null && held.until >= now) return 'busy'
      held = { by, until }
      return 'taken'
    },
    prolong: async until => {
      if (held?.by === by) held = { by, until }
    },
    release: async () => {
      if (held?.by === by) held = null
    }
  })
  return { of, holder: () => held?.by ?? null }
}

const never = new AbortController().signal

test('a second one waits until the first has done its work, however long that takes', async t => {
  const clock = testClock()
  const { of, holder } = row()
  const order: string[] = []
  const first = new Wakeable()
  const one = withLease(of('one'), { clock, signal: never }, async () => {
    await first.sleep(never)
    order.push('one')
  })
  await until(() => holder() === 'one', 'it is taken')
  const two = withLease(of('two'), { clock, signal: never }, async () => {
    order.push('two')
  })
  for (let at = 0; at < 3 * leaseMs; at += 1000) await clock.advance(1000)
  t.equal(holder(), 'one', 'it is prolonged as long as the work goes on')
  first.wake()
  await one
  await clock.advance(1000)
  await two
  t.same(order, ['one', 'two'])
  t.equal(holder(), null)
})

test('what a killed process holds is over by itself', async t => {
  const clock = testClock()
  const { of, holder } = row()
  await of('killed').take({ now: clock.now(), until: new Date(clock.now().getTime() + leaseMs) })
  let done = false
  const next = withLease(of('next'), { clock, signal: never }, async () => {
    done = true
  })
  await clock.advance(leaseMs - 1000)
  t.equal(done, false)
  await clock.advance(2000)
  await next
  t.equal(done, true)
  t.equal(holder(), null)
})

test('who waits stops with its signal, and what fails lets go', async t => {
  const clock = testClock()
  const { of, holder } = row()
  await t.rejects(
    withLease(of('one'), { clock, signal: never }, async () => {
      throw new Error('no')
    }),
    /no/
  )
  t.equal(holder(), null)
  await of('other').take({ now: clock.now(), until: new Date(clock.now().getTime() + leaseMs) })
  const stop = new AbortController()
  const waiting = withLease(of('two'), { clock, signal: stop.signal }, async () => {})
  stop.abort(new Error('stopped'))
  await t.rejects(waiting, /stopped/)
  t.equal(holder(), 'other')
})
