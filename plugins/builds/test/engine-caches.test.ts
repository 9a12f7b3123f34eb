import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { EngineCaches } from '../engines/engine-caches.js'
import { clock } from './kit.js'

type Engine = readonly [bytes: number, usedAt: number, isBusy?: boolean, ownerId?: string]

/** Engines by project: their bytes, when they were used last, whether something is being built in them, and whose they are. */
function lab(engines: Readonly<Record<string, Engine>>) {
  let endSlow = (): void => {}
  const asked: string[] = []
  const left = new Map(Object.entries(engines))
  let isAsked = false
  const trimmed: string[] = []
  const patience = new Set<number>()
  const caches = new EngineCaches({
    engines: {
      sizes: async () => {
        isAsked = true
        return new Map([...left].map(([projectId, [bytes]]) => [projectId, bytes]))
      },
      removeUnused: async projectId => {
        asked.push(projectId)
        if (projectId === 'slow')
          await new Promise<void>(resolve => {
            endSlow = resolve
          })
        if (projectId === 'stuck') throw new Error('a container of its operator uses the volume')
        return left.delete(projectId)
      },
      trim: async (projectId, bytes) => void trimmed.push(`${projectId} ${bytes}`)
    },
    cacheBytes: 30,
    // Nobody is waited for here.
    clock: {
      sleep: async (ms, signal) => {
        patience.add(ms)
        await clock.sleep(50, signal)
      }
    },
    log: { warn: () => {} } as unknown as Log,
    records: {
      all: async () =>
        [...left].map(([projectId, [, usedAt, isBusy = false, ownerId = 'owner']]) => ({
          projectId,
          ownerId,
          usedAt: new Date(usedAt),
          isBusy
        })),
      isBusy: async projectId => projectId === 'started-meanwhile'
    }
  })
  return {
    caches,
    left: () => [...left.keys()],
    isMeasured: () => isAsked,
    trimmed,
    patience,
    asked,
    endSlow: () => endSlow()
  }
}

void test('the caches go first that were not used for longest, and no more than must', async t => {
  const { caches, left, trimmed } = lab({ new: [40, 9], old: [40, 1], older: [30, 0, true], middle: [40, 5] })
  await caches.trim(150)
  t.same(left(), ['new', 'old', 'older', 'middle'])
  await caches.trim(149)
  t.same(left(), ['new', 'older', 'middle'])
  await caches.trim(0)
  t.same(left(), ['older'], 'what is built in now is left alone')
  t.same(trimmed, ['older 30', 'older 30', 'older 30', 'older 0'], 'but keeps no more than it may')
})

void test('one that a build has begun to use does not count as removed', async t => {
  const { caches, left } = lab({ 'started-meanwhile': [40, 1], other: [40, 2], third: [40, 3] })
  await caches.trim(80)
  t.same(left(), ['started-meanwhile', 'third'])
})

void test('the owner gives way whose engines keep most, and nobody who keeps no more than an equal part', async t => {
  const { caches, left, trimmed } = lab({
    b: [115, 1, false, 'b'],
    a1: [282, 2, false, 'a'],
    a2: [273, 3, false, 'a']
  })
  await caches.trim(600)
  t.same(left(), ['b', 'a2'], 'the older one of the larger owner, not the oldest of all')
  t.same(trimmed, [])

  const busy = lab({ b: [115, 1, false, 'b'], a1: [400, 2, true, 'a'], a2: [300, 3, true, 'a'] })
  await busy.caches.trim(600)
  t.same(busy.left(), ['b', 'a1', 'a2'], 'what others hold in use takes nothing from who has little')
  t.same(busy.trimmed, ['a1 30', 'a2 30', 'a1 0', 'a2 0'])

  const three = lab({ b: [300, 1, false, 'b'], c: [250, 0, false, 'c'], a: [400, 9, true, 'a'] })
  await three.caches.trim(750)
  t.same(three.left(), ['c', 'a'], 'who has more than that gives way where larger ones cannot')
})

void test('one with so many files that it takes long keeps neither others nor what is asked later', async t => {
  const { caches, left, asked, endSlow, patience } = lab({
    slow: [100, 0, false, 'a'],
    b: [50, 1, false, 'b'],
    c: [50, 2, false, 'c']
  })
  t.equal(await caches.clear(), false, 'it is told of as going on')
  t.same([...patience], [5000], 'and was waited for')
  t.same(left(), ['slow'])
  t.equal(await caches.clear(), false)
  t.equal(asked.filter(projectId => projectId === 'slow').length, 1, 'it is begun once')
  endSlow()
  await until(() => left().length === 0, 'the slow one to have gone')
  t.equal(await caches.clear(), true)
})

void test('on a short disk all go that are not in use, and nothing is measured for it', async t => {
  const { caches, left, isMeasured, trimmed } = lab({
    one: [1, 1],
    two: [2, 2, true],
    stuck: [9, 2],
    three: [3, 3]
  })
  await caches.clear()
  t.same(left(), ['two', 'stuck'], 'one that cannot go does not keep the others')
  t.same(trimmed, ['two 0'])
  t.notOk(isMeasured())
})
