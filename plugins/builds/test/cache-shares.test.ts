import { test } from 'tap'
import { nextToGo } from '../engines/cache-shares.js'

const cache = (projectId: string, usedAt: number, isBusy = false) => ({
  projectId,
  ownerId: 'one',
  usedAt: new Date(usedAt),
  isBusy,
  bytes: 10
})

test('what is in use gives way after all that is not, however long ago it was used', async t => {
  const caches = [cache('busy', 1, true), cache('new', 3), cache('old', 2), cache('busy too', 0, true)]
  const order: Array<string | undefined> = []
  for (const _ of caches) order.push(nextToGo(caches, new Set(order as string[]), 5)?.projectId)
  t.same(order, ['old', 'new', 'busy too', 'busy'])
})

test('nothing goes of what all may keep, and none twice', async t => {
  t.equal(nextToGo([cache('a', 1)], new Set(), 10), undefined)
  t.equal(nextToGo([cache('a', 1)], new Set(['a']), 5), undefined)
})
