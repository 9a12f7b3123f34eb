import { Wakeable } from 'busbar/sdk'
import { test } from 'tap'

test('a sleeper wakes when it is woken, when it is over, and when the signal aborts', async t => {
  const wakeable = new Wakeable()
  const stop = new AbortController()
  wakeable.wake()
  let isAwake = false
  const sleeping = wakeable.sleep(stop.signal).then(() => {
    isAwake = true
  })
  await Promise.resolve()
  t.equal(isAwake, false, 'what was before it slept does not count')
  wakeable.wake()
  await sleeping
  await wakeable.sleep(stop.signal, 1)
  const last = wakeable.sleep(stop.signal, 1_000_000)
  stop.abort()
  await last
  await wakeable.sleep(stop.signal)
  t.pass('none sleeps on when it has aborted')
})
