import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { Postgres } from '../../core/database/postgres.js'
import { runSingleton } from '../../core/jobs/singleton.js'

/** A singleton whose lock is free, and what has been logged of it. */
function running(t: Test, run: (signal: AbortSignal) => Promise<void>) {
  const stop = new AbortController()
  const logged: Array<{ readonly pauseMs?: number }> = []
  const log = { error: (fields: object) => void logged.push(fields) } as unknown as Log
  const session = {
    underLock: async (_name: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>) => {
      // As a lock in a database: work that is begun without end does not stop the test.
      await new Promise(resolve => setImmediate(resolve))
      await work(signal)
      return true
    }
  }
  const ended = runSingleton({
    postgres: { session } as unknown as Postgres,
    name: 'test',
    run,
    signal: stop.signal,
    log
  })
  t.teardown(async () => {
    stop.abort(new Error('the test is over'))
    await ended
  })
  return { logged, ended, stop: () => stop.abort(new Error('it is to stop')) }
}

test('work that fails again and again begins again after pauses that double', async t => {
  let begun = 0
  const { logged } = running(t, async () => {
    begun++
    throw new Error('as it is meant to')
  })
  await until(() => begun === 3, 'it has begun three times')
  await until(() => logged.length === 3, 'three failures are logged')
  t.same(
    logged.map(({ pauseMs }) => pauseMs),
    [1_000, 2_000, 4_000]
  )
})

test('work that is done is not begun again while the lock is held', async t => {
  let begun = 0
  const { stop, ended, logged } = running(t, async () => {
    begun++
  })
  await until(() => begun > 0, 'it has begun')
  for (let n = 0; n < 50; n++) await new Promise(resolve => setImmediate(resolve))
  t.equal(begun, 1)
  stop()
  await ended
  t.same(logged, [])
})
