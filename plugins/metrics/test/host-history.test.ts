/** What is measured of the machine while it cannot be written: it waits, and does not grow. */
import { testClock } from 'busbar/sdk/testing'
import pino from 'pino'
import { test } from 'tap'
import { HostHistory } from '../host/host-history.js'
import type { HostPoint } from '../host/host-reading.js'
import { HostSampler } from '../host/host-sampler.js'

/** A history whose rows are in memory. */
function setUp() {
  const clock = testClock()
  const written: HostPoint[] = []
  const logged: string[] = []
  const fault: { error?: Error } = {}
  const nothing = { cpu: null, memory: null, swap: null, disk: null }
  const sampler = new HostSampler({ source: { read: async () => nothing, close: async () => {} }, clock })
  const tidied: string[] = []
  const history = new HostHistory({
    sampler,
    clock,
    log: pino(
      { level: 'info' },
      { write: (line: string) => void logged.push(JSON.parse(line).msg as string) }
    ),
    retentionHours: 5,
    store: {
      add: async (points: readonly HostPoint[]) => {
        if (fault.error !== undefined) throw fault.error
        written.push(...points)
      },
      rollUp: async () => void tidied.push('coarser'),
      prune: async (hours: number) => void tidied.push(`kept for ${hours} h`)
    } as never
  })
  const begin = () => {
    const ending = new AbortController()
    const running = history.run(ending.signal)
    return async () => {
      ending.abort()
      await running
    }
  }
  return { clock, written, logged, fault, sampler, history, tidied, begin }
}

test('what is measured is written every five seconds, and made coarser every minute', async t => {
  const { clock, written, tidied, begin } = setUp()
  const end = begin()
  await clock.advance(61_000)
  t.ok(written.length >= 55 && written.length <= 61, String(written.length))
  t.same(tidied, ['coarser', 'kept for 5 h', 'coarser', 'kept for 5 h'])
  await end()
})

test('what an outage leaves unwritten is written after it, ten minutes of it at most', async t => {
  const { clock, written, logged, fault, begin } = setUp()
  const end = begin()
  fault.error = new Error('away')
  await clock.advance(1_800_000)
  t.equal(written.length, 0)
  delete fault.error
  await clock.advance(5_000)
  t.ok(written.length >= 595 && written.length <= 605, String(written.length))
  t.same(logged, [
    'what is measured of the machine cannot be written; it waits, ten minutes of it at most',
    'what is measured of the machine is written again'
  ])
  await end()
})

test('with the database the turn may be lost: what is measured until it comes again is not', async t => {
  const { clock, written, fault, begin } = setUp()
  const end = begin()
  await clock.advance(10_000)
  fault.error = new Error('away')
  await end()
  await clock.advance(60_000)
  delete fault.error
  const again = begin()
  await clock.advance(5_000)
  const times = new Set(written.map(({ recordedAt }) => recordedAt.getTime()))
  t.ok(times.size >= 74, String(times.size))
  t.equal(times.size, written.length, 'nothing twice')
  await again()
})

test('where the turn does not come again, another process has it: nothing is measured any more', async t => {
  const { clock, sampler, begin } = setUp()
  const end = begin()
  await clock.advance(10_000)
  await end()
  t.equal(sampler.isRunning, true)
  await clock.advance(900_000)
  t.equal(sampler.isRunning, false)
})

test('what is left is written when the plugin stops', async t => {
  const { clock, written, sampler, history, begin } = setUp()
  const end = begin()
  await clock.advance(3_000)
  await end()
  await history.stop()
  t.equal(written.length, 3)
  t.equal(sampler.isRunning, false)
})
