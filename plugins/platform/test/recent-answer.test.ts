import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { RecentAnswer } from '../recent-answer.js'

test('an answer is made once for all who ask while it is made and for a while after', async t => {
  const clock = testClock()
  let made = 0
  const recent = new RecentAnswer(async () => ++made, 5_000, clock)
  t.same(await Promise.all([recent.read(), recent.read()]), [1, 1])
  await clock.advance(4_999)
  t.equal(await recent.read(), 1)
  await clock.advance(1)
  t.equal(await recent.read(), 2)
})

test('one that fails fails for those who wait, and is made anew for the next', async t => {
  const clock = testClock()
  let made = 0
  const recent = new RecentAnswer(
    async () => {
      if (++made === 1) throw new Error('broken')
      return made
    },
    5_000,
    clock
  )
  const [first, second] = await Promise.allSettled([recent.read(), recent.read()])
  t.match([first, second], [{ status: 'rejected' }, { status: 'rejected' }])
  t.equal(await recent.read(), 2)
})

test('an answer is not kept for longer where the clock of the machine is set back', async t => {
  const clock = testClock()
  let made = 0
  const recent = new RecentAnswer(async () => ++made, 5_000, clock)
  await recent.read()
  clock.set(-86_400_000)
  await clock.advance(5_000)
  t.equal(await recent.read(), 2)
})
