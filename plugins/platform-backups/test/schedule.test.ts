import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { archives, runsOf } from './kit.js'

const hour = 3_600_000
const environment = { JWT_EXPIRY_HOURS: '200' }

test(
  'a backup is made each night by itself, and what was missed is made up for once',
  { timeout: 280_000 },
  async t => {
    const clock = testClock('2026-11-28T12:00:00Z')
    const first = await createTestKernel({ clock, environment })
    t.teardown(() => first.close())
    let k = first
    // A budget that is counted by a clock that stands still is never full again.
    const refill = setInterval(() => k.resetRateLimits(), 200)
    t.teardown(() => clearInterval(refill))
    let admin = await k.as.session()
    /** Without all that happens every second in between. */
    const later = async (ms: number): Promise<void> => {
      clock.set(ms)
      await clock.advance(31_000)
    }
    /** The hours in which they were asked for, the newest first, once there are so many and all have succeeded. */
    const made = async (count: number): Promise<string[]> =>
      await until(
        async () => {
          const runs = await runsOf(admin)
          return runs.length >= count && runs.every(({ status }) => status === 'succeeded')
            ? runs.map(({ started_at: at }) => at.slice(0, 13))
            : undefined
        },
        `${count} backups to be made`,
        60_000
      )

    // The time of another expression is told by this clock; that of the default was, by the machine's, when the database was made.
    await k.configure('platform-backups', { schedule: '0 3 * * *' })
    await later(14 * hour)
    t.same(await runsOf(admin), [], 'not before it is three o’clock')
    await later(hour)
    t.same(await made(1), ['2026-11-29T03'])
    t.equal((await archives(k)).length, 1)

    await k.stop()
    clock.set(3 * 24 * hour + 6 * hour)
    k = await createTestKernel({ clock, environment, state: first.state })
    const second = k
    t.teardown(() => second.stop())
    admin = await k.as.session()
    await clock.advance(31_000)
    t.same(await made(2), ['2026-12-02T09', '2026-11-29T03'], 'of three nights one is made up for')
    await later(18 * hour)
    t.same(await made(3), ['2026-12-03T03', '2026-12-02T09', '2026-11-29T03'], 'and the next is due')
  }
)
