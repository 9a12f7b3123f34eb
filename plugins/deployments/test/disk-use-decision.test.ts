import { test } from 'tap'
import { type DiskRoom, type DiskUse, type DiskUseLimits, decideDiskUse } from '../disk/disk-use-decision.js'

const mebi = 2 ** 20
const limits: DiskUseLimits = { bytes: 1000 * mebi, inodes: 500 }
const none: DiskUseLimits = { bytes: 0, inodes: 0 }
const use = (id: string, projectId: string, mib: number, grownMib = 0, isRunning = true): DiskUse => ({
  id,
  owner: { projectId },
  isRunning,
  bytes: mib * mebi,
  grownBytes: grownMib * mebi,
  namelessBytes: 0,
  inodes: 0,
  grownInodes: 0
})
const files = (id: string, projectId: string, inodes: number, grownInodes = 0): DiskUse => ({
  ...use(id, projectId, 0),
  inodes,
  grownInodes
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
  t.same(decided(uses, limits, room(9000, 0)), ['stop over', 'stop other'])
  t.same(decided(uses, limits, undefined), ['stop over', 'stop other'], 'on an engine elsewhere too')
  t.same(decided(uses, none, room(9000, 0)), [], '0 is no limit')
})

test('near the floor the container goes that has grown most, of the project whose containers have', async t => {
  const uses = [
    use('large', 'victim', 900, 10),
    use('one', 'taker', 300, 300),
    use('two', 'taker', 310, 310),
    use('single', 'other', 500, 400)
  ]
  t.same(decided(uses, limits, room(1535, 1100)), ['remove two'])
  t.same(decided(uses, limits, room(1536, 1100)), [], 'with half as much again as the floor there is time')
})

test('nothing goes while what is missing was taken by something else', async t => {
  const uses = [use('a', 'a', 900, 499)]
  t.same(decided(uses, limits, room(500, 1000)), [])
  t.same(decided([use('a', 'a', 900, 500)], limits, room(500, 1000)), ['remove a'], 'half of it tells')
  t.same(decided([use('a', 'a', 900, 63)], limits, room(500, 63)), [], 'a little growth is no reason')
  t.same(decided([], limits, room(500, 0)), [])
})

test('on a disk that stays short the largest of the project that has most goes', async t => {
  const uses = [use('small', 'a', 600), use('larger', 'a', 700), use('b', 'b', 1000)]
  t.same(decided(uses, none, room(1000, 0, 29_999)), [], 'builds and caches go first')
  t.same(decided(uses, none, room(1000, 0, 30_000)), ['remove larger'])
  t.same(decided([use('b', 'b', 1023)], none, room(1000, 0, 60_000)), [], 'not for less than the floor')
  t.same(decided([use('b', 'b', 1024)], none, room(1000, 0, 60_000)), ['remove b'])
})

test('a running container that has made more files than it may is stopped', async t => {
  const uses = [files('at', 'a', 500), files('over', 'a', 501)]
  t.same(decided(uses, limits, room(9000, 0)), ['stop over'])
  t.same(decided(uses, none, room(9000, 0)), [], '0 is no limit')
  const [verdict] = decideDiskUse(uses, limits, undefined)
  t.equal(verdict?.of, 'inodes')
})

test('where inodes end first, the container goes that has made most, of the project whose containers have', async t => {
  const short: DiskRoom = { ...room(1000, 1000), bytesPerInode: 16_384 }
  const uses = [
    { ...use('writer', 'other', 5000, 5000), grownInodes: 10 },
    files('old', 'victim', 90_000, 10),
    files('one', 'taker', 30_000, 30_000),
    files('two', 'taker', 31_000, 31_000),
    files('single', 'second', 50_000, 50_000)
  ]
  t.same(decided(uses, none, short), ['remove two'])
  t.same(decided([files('a', 'a', 31_999, 31_999)], none, short), [], 'less than half tells nothing')
  t.same(decided([files('a', 'a', 32_000, 32_000)], none, short), ['remove a'])
  const lasting = { ...short, shortMs: 30_000 }
  t.same(decided([files('a', 'a', 65_536)], none, lasting), ['remove a'], 'the largest where nothing grows')
  t.same(decided([files('a', 'a', 65_535)], none, lasting), [])
})

test('where bytes end first, each file counts as what the smallest takes', async t => {
  const small = files('small', 'a', 131_072, 131_072)
  t.same(decided([small, use('b', 'b', 511, 511)], none, room(1000, 1000)), ['remove small'])
  t.same(decided([small, use('b', 'b', 513, 513)], none, room(1000, 1000)), ['remove b'])
})
