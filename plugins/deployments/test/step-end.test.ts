import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { endOf } from '../rollout/step-end.js'

const graceMs = 1000

function setUp() {
  const clock = testClock()
  const told = new AbortController()
  let left = 0
  return {
    clock,
    told,
    left: () => left,
    wait: <T>(work: Promise<T>) =>
      endOf(work, {
        signal: told.signal,
        clock,
        graceMs,
        onLeft: () => {
          left++
        }
      })
  }
}

test('a step ends like its work, before it is told to and for a while after', async t => {
  const { clock, told, left, wait } = setUp()
  t.equal(await wait(Promise.resolve(1)), 1)
  await t.rejects(wait(Promise.reject(new Error('broken'))), { message: 'broken' })
  let resolve = (_: number): void => {}
  const late = new Promise<number>(done => {
    resolve = done
  })
  const waited = wait(late)
  await clock.advance(10 * graceMs)
  told.abort(new Error('cancelled'))
  await clock.advance(graceMs - 1)
  resolve(2)
  t.equal(await waited, 2)
  t.equal(await wait(Promise.resolve(3)), 3, 'the signal was there before')
  await clock.advance(graceMs)
  t.equal(left(), 0)
})

test('one that goes on is left to itself, with the reason of the signal', async t => {
  const { clock, told, left, wait } = setUp()
  const before = wait(new Promise(() => {}))
  told.abort(new Error('cancelled'))
  const after = wait(new Promise(() => {}))
  const ends = Promise.all([
    t.rejects(before, { message: 'cancelled' }),
    t.rejects(after, { message: 'cancelled' })
  ])
  await clock.advance(graceMs)
  await ends
  t.equal(left(), 2)
})
