import { type Log, service } from 'busbar/sdk'

import { type Test, test } from 'tap'
import { optionalHandle } from '../../core/services/optional-handle.js'
import { ServiceRegistry } from '../../core/services/registry.js'
import { testClock } from '../../sdk/testing/test-clock.js'

const clocks = service<{ time(): number }>('clocks.main')
const implementation = { time: () => 1 }

function setUp(t: Test) {
  const registry = new ServiceRegistry()
  const clock = testClock()
  const [given, ended] = [new AbortController(), new AbortController()]
  t.teardown(() => given.abort())
  const warnings: string[] = []
  let isWithheld = false
  const handle = optionalHandle('clocks.main', {
    registry,
    handle: () => registry.handle('clocks.main'),
    clock,
    isWithheld: () => isWithheld,
    log: { warn: (_: object, text: string) => warnings.push(text) } as unknown as Log,
    ended: ended.signal
  })
  return {
    registry,
    clock,
    given,
    ended,
    warnings,
    handle,
    withhold: (now: boolean): void => {
      isWithheld = now
    },
    /** Another run of the provider each time. */
    provide(run: object = {}): object {
      registry.provide({ plugin: 'clocks', run }, clocks, implementation)
      return run
    }
  }
}

const untilAborted = async (signal: AbortSignal): Promise<void> =>
  await new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))

test('an optional service is there while it is provided, and not for whom it is withheld from', t => {
  const { registry, handle, provide, withhold } = setUp(t)
  t.equal(handle.get(), undefined)
  const run = provide()
  t.equal(handle.get(), registry.handle('clocks.main'))
  withhold(true)
  t.equal(handle.get(), undefined)
  withhold(false)
  registry.withdraw(run)
  t.equal(handle.get(), undefined)
  t.end()
})

test('what follows a service begins with each of its runs at once, and goes on through a change that is none', async t => {
  const { registry, clock, given, warnings, handle, provide } = setUp(t)
  const told: string[] = []
  const following = handle.whileAvailable(given.signal, async (given, signal) => {
    told.push(given === registry.handle('clocks.main') ? 'begins' : 'begins with another')
    await untilAborted(signal)
    told.push('ends')
    throw new Error('as it was told to end')
  })
  await clock.advance(0)
  t.same(told, [])
  const first = provide()
  await clock.advance(0)
  t.same(told.splice(0), ['begins'])
  provide(first)
  await clock.advance(0)
  t.same(told, [], 'the same run provides it again')
  provide()
  await clock.advance(0)
  t.same(told.splice(0), ['ends', 'begins'], 'without a pause')
  given.abort()
  await following
  t.same(told, ['ends'])
  t.same(warnings, [], 'what fails as it was told to end has not failed')
})

test('what follows a service ends with its caller and with the run of its plugin, and begins no more', async t => {
  for (const which of ['given', 'ended'] as const) {
    for (const isProvided of [true, false]) {
      const { clock, handle, provide, ...ends } = setUp(t)
      if (isProvided) provide()
      let begun = 0
      const following = handle.whileAvailable(ends.given.signal, async (_service, signal) => {
        begun++
        await untilAborted(signal)
      })
      await clock.advance(0)
      ends[which].abort()
      await following
      provide()
      await handle.whileAvailable(ends.given.signal, async () => {
        begun++
      })
      await clock.advance(60_000)
      t.equal(begun, isProvided ? 1 : 0, `${which}, ${isProvided ? 'provided' : 'not provided'}`)
    }
  }
})

test('what fails is told and begins again after pauses that double up to half a minute', async t => {
  const { clock, given, warnings, handle, provide } = setUp(t)
  const begunAt: number[] = []
  const start = clock.now().getTime()
  provide()
  void handle.whileAvailable(given.signal, async () => {
    begunAt.push((clock.now().getTime() - start) / 1000)
    throw new Error('it cannot be followed')
  })
  await clock.advance(121_000)
  t.same(begunAt, [0, 1, 3, 7, 15, 31, 61, 91, 121])
  t.equal(warnings.length, 9)
})

test('what has followed for more than half a minute, or another run, begins again after one second', async t => {
  for (const { ms, pauses } of [
    { ms: 30_000, pauses: [1, 2, 4] },
    { ms: 30_001, pauses: [1, 1, 1] }
  ]) {
    const { clock, given, warnings, handle, provide } = setUp(t)
    const spans: Array<{ readonly begin: number; end: number }> = []
    provide()
    void handle.whileAvailable(given.signal, async () => {
      const span = { begin: clock.now().getTime(), end: 0 }
      spans.push(span)
      await clock.sleep(ms)
      span.end = clock.now().getTime()
    })
    await clock.advance(150_000)
    t.same(
      spans.slice(1, 4).map(({ begin }, index) => Math.round((begin - (spans[index]?.end ?? 0)) / 1000)),
      pauses,
      `${ms} ms`
    )
    t.same(warnings, [], 'what ends by itself has not failed')
  }
  const { clock, given, handle, provide } = setUp(t)
  const begunAt: number[] = []
  let isFailing = true
  const start = clock.now().getTime()
  provide()
  void handle.whileAvailable(given.signal, async (_service, signal) => {
    begunAt.push((clock.now().getTime() - start) / 1000)
    if (isFailing) throw new Error('it cannot be followed')
    await untilAborted(signal)
  })
  await clock.advance(6000)
  t.same(begunAt.splice(0), [0, 1, 3])
  isFailing = false
  await clock.advance(1000)
  t.same(begunAt.splice(0), [7])
  isFailing = true
  provide()
  await clock.advance(1000)
  t.same(begunAt, [7, 8], 'after a change')
})

test('a pause ends when there is another run, and when there is none nothing begins', async t => {
  const { registry, clock, given, handle, provide } = setUp(t)
  let begun = 0
  const run = provide()
  void handle.whileAvailable(given.signal, async () => {
    begun++
    throw new Error('it cannot be followed')
  })
  await clock.advance(0)
  t.equal(begun, 1)
  registry.withdraw(run)
  await clock.advance(60_000)
  t.equal(begun, 1, 'it is off')
  provide()
  await clock.advance(0)
  t.equal(begun, 2)
  provide()
  await clock.advance(0)
  t.equal(begun, 3, 'it is another, before the pause is over')
})

test('nothing of a round that is over listens for changes any more', async t => {
  const { registry, clock, given, handle, provide } = setUp(t)
  const listening: AbortSignal[] = []
  const { onChange } = registry
  registry.onChange = (id, listener, signal) => {
    listening.push(signal)
    onChange.call(registry, id, listener, signal)
  }
  provide()
  const following = handle.whileAvailable(given.signal, async () => {})
  await clock.advance(3000)
  t.same(
    listening.map(({ aborted }) => aborted),
    [true, true, false]
  )
  given.abort()
  await following
  t.ok(listening.every(({ aborted }) => aborted))
})
