import { test } from 'tap'
import { type DiskRoom, type DiskUse, decideDiskUse } from '../disk/disk-use-decision.js'

const mebi = 2 ** 20
const limit = 1000 * mebi
const use = (id: string, projectId: string, mib: number, grownMib = 0, isRunning = true): DiskUse => ({
  id,
  owner: { projectId },
  isRunning,
  bytes: mib * mebi,
  grownBytes: grownMib * mebi
})
const room = (freeMib: number, lostMib: number, shortMs = 0): DiskRoom => ({
  freeBytes: freeMib * mebi,
  floorBytes: 1024 * mebi,
  lostBytes: lostMib * mebi,
  shortMs
})
const decided = (...parameters: Parameters<typeof decideDiskUse>) =>
  decideDiskUse(...parameters).map(({ kind, use: { id } }) => `${kind} ${id}`)

test('each running container that has written more than the limit is stopped', async t => {
  const uses = [
    use('at', 'a', 1000),
    use('over', 'a', 1001),
    use('other', 'b', 2000),
    use('ended', 'b', 2000, 0, false)
  ]
  t.same(decided(uses, limit, room(9000, 0)), ['stop over', 'stop other'])
  t.same(decided(uses, limit, undefined), ['stop over', 'stop other'], 'on an engine elsewhere too')
  t.same(decided(uses, 0, room(9000, 0)), [], '0 is no limit')
})

test('near the floor the container goes that has grown most, of the project whose containers have', async t => {
  const uses = [
    use('large', 'victim', 900, 10),
    use('one', 'taker', 300, 300),
    use('two', 'taker', 310, 310),
    use('single', 'other', 500, 400)
  ]
  t.same(decided(uses, limit, room(1535, 1100)), ['remove two'])
  t.same(decided(uses, limit, room(1536, 1100)), [], 'with half as much again as the floor there is time')
})

test('nothing goes while what is missing was taken by something else', async t => {
  const uses = [use('a', 'a', 900, 499)]
  t.same(decided(uses, limit, room(500, 1000)), [])
  t.same(decided([use('a', 'a', 900, 500)], limit, room(500, 1000)), ['remove a'], 'half of it tells')
  t.same(decided([use('a', 'a', 900, 63)], limit, room(500, 63)), [], 'a little growth is no reason')
  t.same(decided([], limit, room(500, 0)), [])
})

test('on a disk that stays short the largest of the project that has most goes', async t => {
  const uses = [use('small', 'a', 600), use('larger', 'a', 700), use('b', 'b', 1000)]
  t.same(decided(uses, 0, room(1000, 0, 29_999)), [], 'builds and caches go first')
  t.same(decided(uses, 0, room(1000, 0, 30_000)), ['remove larger'])
  t.same(decided([use('b', 'b', 1023)], 0, room(1000, 0, 60_000)), [], 'not for less than the floor')
  t.same(decided([use('b', 'b', 1024)], 0, room(1000, 0, 60_000)), ['remove b'])
})
