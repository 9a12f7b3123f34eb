import { test } from 'tap'
import { createSwitchMeter } from '../../../sdk/http1/forwarding/switch-meter.js'

function metered() {
  let now = 0
  const meter = createSwitchMeter(() => now)
  return {
    meter,
    at(time: number, what: 'began' | 'answered' | 'failed' | 'abandoned' | 'cut') {
      now = time
      meter[what]()
    },
    set: (time: number) => {
      now = time
    }
  }
}

test('the time in which no request waits is no gap', async t => {
  const { meter, at, set } = metered()
  const watch = meter.watch()
  at(100, 'began')
  at(120, 'answered')
  at(500, 'began')
  at(510, 'answered')
  set(1000)
  t.same(watch.end(), { served: 2, failed: 0, longestGapMs: 20 })
})

test('a gap goes on while another request waits, whatever became of the first', async t => {
  for (const end of ['failed', 'abandoned'] as const) {
    const { meter, at } = metered()
    const watch = meter.watch()
    at(100, 'began')
    at(110, 'began')
    at(130, end)
    at(160, 'answered')
    at(500, 'began')
    at(510, 'answered')
    t.match(watch.end(), { served: 2, failed: end === 'failed' ? 1 : 0, longestGapMs: 60 }, end)
  }
})

test('an answer that was cut off is a failure besides, and what ends after the watch is none of its own', async t => {
  const { meter, at } = metered()
  const watch = meter.watch()
  at(0, 'began')
  at(10, 'answered')
  at(20, 'cut')
  at(30, 'began')
  const told = { ...watch.end() }
  t.same(told, { served: 1, failed: 1, longestGapMs: 10 })
  at(90, 'answered')
  at(95, 'cut')
  t.same(watch.end(), told)
})
