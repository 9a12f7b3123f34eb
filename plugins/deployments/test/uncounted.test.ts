import type { EngineDisk } from 'busbar/api/builds'
import { test } from 'tap'
import { Uncounted } from '../disk/uncounted.js'

const limits = { bytes: 1000, inodes: 400 }
const disk = (freeBytes: number, free: number): EngineDisk => ({
  freeBytes,
  floorBytes: 100,
  inodes: { free, bytesEach: 10 }
})
const begun = (freeBytes: number, free: number): Uncounted => {
  const uncounted = new Uncounted(limits)
  uncounted.note(disk(freeBytes, free), [{ bytes: 500 }], false)
  return uncounted
}

test('files are counted when a quarter of what one may have is gone that no container accounts for', async t => {
  const uncounted = begun(9000, 800)
  t.notOk(uncounted.isMissing(disk(9000, 800), [{ bytes: 500 }]))
  t.notOk(uncounted.isMissing(disk(7000, 800), [{ bytes: 2500 }]), 'it has been written by one')
  t.notOk(uncounted.isMissing(disk(8751, 800), [{ bytes: 500 }]))
  t.ok(uncounted.isMissing(disk(8750, 800), [{ bytes: 500 }]))
  t.notOk(uncounted.isMissing(disk(9000, 701), [{ bytes: 500 }]))
  t.ok(uncounted.isMissing(disk(9000, 700), [{ bytes: 500 }]))
  t.notOk(uncounted.isMissing(undefined, []), 'of an engine elsewhere that is not known')
  t.notOk(new Uncounted(limits).isMissing(disk(0, 0), []), 'nor in the beginning')
})

test('what was found does not make it count again, and what others give back is there', async t => {
  const uncounted = begun(9000, 800)
  uncounted.note(disk(6000, 300), [{ bytes: 500 }], true)
  t.notOk(uncounted.isMissing(disk(6000, 300), [{ bytes: 500 }]))
  uncounted.note(disk(8000, 700), [{ bytes: 500 }], false)
  t.ok(uncounted.isMissing(disk(7700, 700), [{ bytes: 500 }]), 'lost since')
  t.ok(uncounted.hasLostInodes(disk(8000, 600)))
  uncounted.note(disk(7000, 600), [{ bytes: 500 }], false)
  t.ok(uncounted.isMissing(disk(7700, 700), [{ bytes: 500 }]), 'as long as it was not looked for')
})

test('without limits nothing is counted while there is room, and near the floor no more than tells', async t => {
  const free = new Uncounted({ bytes: 0, inodes: 0 })
  free.note(disk(9000, 800), [], false)
  t.notOk(free.isMissing(disk(1000, 0), []))
  const room = { freeBytes: 90, floorBytes: 100, lostBytes: 3000, shortMs: 0 }
  t.same(free.countingOf(room, disk(90, 9)), { most: 301 })
  t.same(free.countingOf({ ...room, lostBytes: 0 }, disk(90, 9)), { most: 21 })
  t.same(begun(1, 1).countingOf({ ...room, lostBytes: 0 }, disk(90, 9)), { most: 401 })
  t.same(free.countingOf(undefined, undefined), { most: 1_000_001 })
})
