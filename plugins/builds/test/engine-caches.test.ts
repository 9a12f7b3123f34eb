import type { Log } from 'busbar/sdk'
import { test } from 'tap'
import { EngineCaches } from '../engines/engine-caches.js'

/** Engines by project: their bytes, when they were used last, and whether something is being built in them. */
function lab(engines: Readonly<Record<string, readonly [bytes: number, usedAt: number, isBusy?: boolean]>>) {
  const left = new Map(Object.entries(engines))
  let isAsked = false
  const trimmed: string[] = []
  const caches = new EngineCaches({
    engines: {
      sizes: async () => {
        isAsked = true
        return new Map([...left].map(([projectId, [bytes]]) => [projectId, bytes]))
      },
      removeUnused: async projectId => {
        if (projectId === 'stuck') throw new Error('a container of its operator uses the volume')
        return left.delete(projectId)
      },
      trim: async (projectId, bytes) => void trimmed.push(`${projectId} ${bytes}`)
    },
    cacheBytes: 30,
    log: { warn: () => {} } as unknown as Log,
    records: {
      all: async () =>
        [...left].map(([projectId, [, usedAt, isBusy = false]]) => ({
          projectId,
          usedAt: new Date(usedAt),
          isBusy
        })),
      isBusy: async projectId => projectId === 'started-meanwhile'
    }
  })
  return { caches, left: () => [...left.keys()], isMeasured: () => isAsked, trimmed }
}

void test('the caches go first that were not used for longest, and no more than must', async t => {
  const { caches, left, trimmed } = lab({ new: [40, 9], old: [40, 1], older: [30, 0, true], middle: [40, 5] })
  await caches.trim(150)
  t.same(left(), ['new', 'old', 'older', 'middle'])
  await caches.trim(149)
  t.same(left(), ['new', 'older', 'middle'])
  await caches.trim(0)
  t.same(left(), ['older'], 'what is built in now is left alone')
  t.same(trimmed, ['older 30', 'older 30', 'older 30'], 'but keeps no more than it may')
})

void test('one that a build has begun to use does not count as removed', async t => {
  const { caches, left } = lab({ 'started-meanwhile': [40, 1], other: [40, 2], third: [40, 3] })
  await caches.trim(80)
  t.same(left(), ['started-meanwhile', 'third'])
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
