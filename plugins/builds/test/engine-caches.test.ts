import { test } from 'tap'
import { EngineCaches } from '../engines/engine-caches.js'

/** Engines by project: their bytes, when they were used last, and whether something is being built in them. */
function lab(engines: Readonly<Record<string, readonly [bytes: number, usedAt: number, isBusy?: boolean]>>) {
  const left = new Map(Object.entries(engines))
  let isAsked = false
  const caches = new EngineCaches({
    engines: {
      sizes: async () => {
        isAsked = true
        return new Map([...left].map(([projectId, [bytes]]) => [projectId, bytes]))
      },
      removeUnused: async projectId => projectId !== 'started-meanwhile' && left.delete(projectId)
    },
    records: {
      all: async () =>
        [...left].map(([projectId, [, usedAt, isBusy = false]]) => ({
          projectId,
          usedAt: new Date(usedAt),
          isBusy
        }))
    }
  })
  return { caches, left: () => [...left.keys()], isMeasured: () => isAsked }
}

void test('the caches go first that were not used for longest, and no more than must', async t => {
  const { caches, left } = lab({ new: [40, 9], old: [40, 1], older: [30, 0, true], middle: [40, 5] })
  await caches.trim(150)
  t.same(left(), ['new', 'old', 'older', 'middle'])
  await caches.trim(149)
  t.same(left(), ['new', 'older', 'middle'])
  await caches.trim(0)
  t.same(left(), ['older'], 'what is built in now is left alone')
})

void test('one that a build has begun to use does not count as removed', async t => {
  const { caches, left } = lab({ 'started-meanwhile': [40, 1], other: [40, 2], third: [40, 3] })
  await caches.trim(80)
  t.same(left(), ['started-meanwhile', 'third'])
})

void test('on a short disk all go that are not in use, and nothing is measured for it', async t => {
  const { caches, left, isMeasured } = lab({ one: [1, 1], two: [2, 2, true], three: [3, 3] })
  await caches.clear()
  t.same(left(), ['two'])
  t.notOk(isMeasured())
})
