import type { EngineDiskUse } from 'busbar/api/containers'
import { Problem } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import pino from 'pino'
import { test } from 'tap'
import { DiskFigures } from '../disk-figures.js'

const share = { count: 0, bytes: 0, reclaimableBytes: 0 }
const use = (layersBytes: number): EngineDiskUse => ({
  layersBytes,
  images: share,
  containers: share,
  volumes: share,
  buildCache: share,
  sharedBytes: new Map(),
  volumeBytes: new Map()
})

/** An engine that measures until it is told to end. */
function slowEngine() {
  const waiting: Array<PromiseWithResolvers> = []
  const words: string[] = []
  const clock = testClock()
  const log = pino({ level: 'warn' }, { write: (line: string) => void words.push(line) })
  const figures = new DiskFigures(
    async () => await new Promise<EngineDiskUse>((resolve, reject) => waiting.push({ resolve, reject })),
    clock,
    log
  )
  let ended = 0
  return {
    figures,
    clock,
    words,
    begun: () => waiting.length,
    end: async (outcome: EngineDiskUse | Error) => {
      const one = waiting[ended++]
      if (outcome instanceof Error) one?.reject(outcome)
      else one?.resolve(outcome)
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}
interface PromiseWithResolvers {
  readonly resolve: (use: EngineDiskUse) => void
  readonly reject: (error: Error) => void
}

test('the first figures are waited for a while, and those who ask meanwhile share the measurement', async t => {
  const { figures, clock, begun, end } = slowEngine()
  const asked = Promise.all([figures.read(), figures.read()])
  await end(use(1))
  t.match(await asked, [{ use: { layersBytes: 1 } }, { use: { layersBytes: 1 } }])
  t.equal(begun(), 1)
  t.match(await figures.read(), { at: clock.now() })
})

test('a first measurement that takes long is there for those who ask later', async t => {
  const { figures, clock, begun, end } = slowEngine()
  const first = figures.read()
  await clock.advance(2_000)
  t.equal(await first, undefined)
  const at = new Date(clock.now().getTime() - 2_000)
  await end(use(1))
  t.match(await figures.read(), { use: { layersBytes: 1 }, at })
  t.equal(begun(), 1)
})

test('old figures are answered at once, with their age, while new ones are made', async t => {
  const { figures, clock, begun, end } = slowEngine()
  const first = figures.read()
  await end(use(1))
  await first
  const at = clock.now()
  await clock.advance(59_000)
  t.match(await figures.read(), { use: { layersBytes: 1 }, at })
  t.equal(begun(), 1, 'they are young enough')
  await clock.advance(1_000)
  for (let asked = 0; asked < 10; asked++) t.match(await figures.read(), { use: { layersBytes: 1 }, at })
  t.equal(begun(), 2, 'one is made for all')
  await end(use(2))
  t.match(await figures.read(), { use: { layersBytes: 2 }, at: clock.now() })
})

test('nothing is measured while nobody asks', async t => {
  const { figures, clock, begun, end } = slowEngine()
  await clock.advance(3_600_000)
  t.equal(begun(), 0)
  const first = figures.read()
  await end(use(1))
  await first
  await clock.advance(3_600_000)
  t.equal(begun(), 1)
})

test('an engine that takes long is asked the more rarely', async t => {
  const { figures, clock, begun, end } = slowEngine()
  const first = figures.read()
  await clock.advance(30_000)
  t.equal(await first, undefined)
  await end(use(1))
  await clock.advance(599_000)
  await figures.read()
  t.equal(begun(), 1)
  await clock.advance(1_000)
  await figures.read()
  t.equal(begun(), 2)
})

test('a measurement that fails leaves the figures of before, is logged, and is made again when somebody asks later', async t => {
  const { figures, clock, begun, end, words } = slowEngine()
  const first = figures.read()
  await end(new Error('broken'))
  t.equal(await first, undefined)
  t.match(words, [/broken/])
  t.equal(await figures.read(), undefined)
  t.equal(begun(), 1, 'not at once')
  await clock.advance(10_000)
  const second = figures.read()
  await until(() => begun() === 2, 'the second measurement')
  await end(use(2))
  t.match(await second, { use: { layersBytes: 2 } })
  await clock.advance(60_000)
  await figures.read()
  await end(new Problem(503, 'E_ENGINE_UNREACHABLE', 'away'))
  t.match(await figures.read(), { use: { layersBytes: 2 } })
  t.equal(words.length, 1, 'that the engine is away others say')
})

test('where the clock of the machine is set back, new figures are made as soon as ever', async t => {
  const { figures, clock, begun, end } = slowEngine()
  const first = figures.read()
  await end(use(1))
  await first
  clock.set(-86_400_000)
  await clock.advance(60_000)
  await figures.read()
  t.equal(begun(), 2)
  await end(use(2))
})
