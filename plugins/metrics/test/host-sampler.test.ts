/** One sampler for all who follow the machine. */
import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import type { HostPoint } from '../host/host-reading.js'
import { HostSampler } from '../host/host-sampler.js'

/** A machine that is busy in every tenth unit, and how often it was read. */
function setUp() {
  const clock = testClock()
  let reads = 0
  let isOpen = false
  const source = {
    close: async () => {
      isOpen = false
    },
    read: async () => {
      isOpen = true
      reads++
      return { cpu: { busy: reads * 10, total: reads * 100 }, memory: null, swap: null, disk: null }
    }
  }
  return { clock, sampler: new HostSampler({ source, clock }), reads: () => reads, isOpen: () => isOpen }
}

test('the machine is read once a second, however many follow', async t => {
  const { clock, sampler, reads } = setUp()
  const heard: HostPoint[][] = [[], [], []]
  const stops = heard.map(list =>
    sampler.follow(point => {
      list.push(point)
    })
  )
  await clock.advance(3000)
  t.equal(reads(), 4, 'and once to begin with')
  for (const list of heard)
    t.same(
      list.map(({ cpuPercent }) => cpuPercent),
      [10, 10, 10]
    )
  for (const stop of stops) stop()
})

test('it rests with the last one who follows, and begins with the next first one', async t => {
  const { clock, sampler, reads, isOpen } = setUp()
  t.equal(sampler.isRunning, false)
  const [first, second] = [sampler.follow(() => {}), sampler.follow(() => {})]
  await clock.advance(1000)
  first()
  first()
  t.equal(sampler.isRunning, true)
  await clock.advance(1000)
  second()
  t.equal(sampler.isRunning, false)
  t.equal(isOpen(), false)
  const before = reads()
  await clock.advance(60_000)
  t.equal(reads(), before)
  const again: HostPoint[] = []
  sampler.follow(point => {
    again.push(point)
  })()
  const stop = sampler.follow(point => {
    again.push(point)
  })
  await clock.advance(1000)
  t.match(again, [{ cpuPercent: 10 }], 'the rest is not a part of it')
  stop()
})

test('what it uses now is the latest point while somebody follows, else measured in a moment', async t => {
  const { clock, sampler, reads } = setUp()
  const alone = sampler.current()
  await clock.advance(250)
  t.match(await alone, { cpuPercent: 10, recordedAt: clock.now() })
  t.equal(sampler.isRunning, false)
  const stop = sampler.follow(() => {})
  await clock.advance(1000)
  const before = reads()
  t.match(await sampler.current(), { cpuPercent: 10, recordedAt: clock.now() })
  t.equal(reads(), before)
  stop()
  await clock.advance(2000)
  const later = sampler.current()
  await clock.advance(250)
  t.match(await later, { recordedAt: clock.now() })
})
