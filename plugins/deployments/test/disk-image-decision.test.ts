import { test } from 'tap'
import {
  type DiskRoom,
  type DiskUse,
  type DiskVerdict,
  decideDiskUse,
  givesNow,
  isDeciding,
  type KnownStores
} from '../disk/disk-use-decision.js'
import { reasonOf, releaseReason } from '../disk/disk-use-words.js'
import type { ImageRecord, OwnedImage } from '../disk/image-holdings.js'
import { noneRestarted } from '../disk/restarts.js'

const mebi = 2 ** 20
const none = { bytes: 0, inodes: 0 }
const use = (id: string, ownerId: string, mib: number, grownMib = 0): DiskUse => ({
  id,
  ownerId,
  owner: { projectId: `project of ${ownerId}`, deploymentId: `deployment of ${id}` },
  isRunning: true,
  bytes: mib * mebi,
  grownBytes: grownMib * mebi,
  namelessBytes: 0,
  inodes: 0,
  grownInodes: 0,
  names: 0,
  isCut: false
})
const room = (freeMib: number, lostMib: number, shortMs = 0): DiskRoom => ({
  freeBytes: freeMib * mebi,
  floorBytes: 400 * mebi,
  lostBytes: lostMib * mebi,
  shortMs
})
/** An image of so many MiB of its own; of a container, or spare. */
const image = (name: string, ownerId: string, mib: number, container?: string): OwnedImage => ({
  id: name,
  containerIds: container === undefined ? [] : [container],
  parts: [{ id: name, bytes: mib * mebi }],
  ownerIds: new Set([ownerId]),
  keeps: new Set([name])
})
const record = (reference: string, applicationId: string, container?: string): ImageRecord => ({
  applicationId,
  deploymentId: `deployment of ${container ?? reference}`,
  reference,
  isActive: false,
  isServing: container !== undefined
})
const words = (verdict: DiskVerdict): string =>
  `${verdict.kind} ${verdict.kind === 'release' ? verdict.image.reference : verdict.use.id}`
/** As if each had been restarted. */
const decided = (uses: readonly DiskUse[], at: DiskRoom, images: KnownStores) =>
  decideDiskUse(uses, none, at, { ...noneRestarted, lately: new Set(uses.map(({ id }) => id)) }, images).map(
    words
  )

const quiet = use('quiet', 'b', 701)
const lasting = room(386, 1115, 30_000)
const growing = room(386, 125)

test('what images of an owner take counts for who holds most', async t => {
  const taker = use('taker', 'a', 125, 125)
  const stored = [image('now', 'a', 990, 'taker'), image('theirs', 'b', 5, 'quiet')]
  const records = [record('now', 'app', 'taker')]
  for (const at of [lasting, growing]) {
    t.same(decided([taker, quiet], at, { caches: [], stored: [], records: [] }), ['remove quiet'], 'without')
    t.same(decided([taker, quiet], at, { caches: [], stored, records }), ['remove taker'])
    t.equal(givesNow([taker, quiet], at, { stored, caches: [] }), 'a')
  }
  t.notOk(isDeciding([taker, quiet], room(600, 125)), 'there is room')
  t.notOk(isDeciding([taker, quiet], room(386, 1115)), 'it may be anything')
  t.ok(isDeciding([taker, quiet], lasting))
})

test('applications of an owner count with the images of all', async t => {
  const uses = [use('one', 'a', 250, 250), use('two', 'a', 0), use('three', 'a', 0), quiet]
  const stored = ['one', 'two', 'three'].map(name => image(`of ${name}`, 'a', 270, name))
  t.same(decided(uses, room(543, 250), { caches: [], stored, records: [] }), ['remove one'])
})

test('images that nothing runs from go before what anybody has written', async t => {
  const taker = use('taker', 'a', 125, 125)
  const stored = [
    image('old', 'a', 90),
    image('older', 'a', 80),
    image('oldest', 'a', 70),
    image('now', 'a', 600, 'taker')
  ]
  const records = [
    record('now', 'app', 'taker'),
    ...['old', 'older', 'oldest'].map(name => record(name, 'app'))
  ]
  t.same(
    decided([taker, quiet], room(460, 125), { caches: [], stored, records }),
    ['release oldest', 'release older'],
    'until there is room'
  )
  t.same(
    decided([taker, use('other', 'b', 820)], room(386, 125), { caches: [], stored, records }),
    ['release oldest', 'release older'],
    'or another owner holds more'
  )
  t.same(
    decideDiskUse([taker, quiet], none, lasting, noneRestarted, { caches: [], stored, records }).map(words),
    ['release oldest'],
    'and nobody is restarted to see what comes back'
  )
  const smaller = { caches: [], stored: [image('old', 'b', 100)], records: [record('old', 'app')] }
  t.same(
    decided([use('taker', 'a', 900, 125), quiet], growing, smaller),
    ['remove taker'],
    'not those of who holds less'
  )
})

test('while containers take the last of the disk, who fills it with images gives way, and not who writes', async t => {
  const fills = [use('one', 'a', 0), use('two', 'a', 1)]
  const stored = [image('of one', 'a', 900, 'one'), image('of two', 'a', 300, 'two')]
  const writes = use('writes', 'c', 200, 200)
  const images = { caches: [], stored, records: [] }
  t.same(decided([...fills, quiet, writes], room(386, 200), images), ['remove one'])
  t.same(
    decided([...fills, quiet, writes], room(386, 1000, 30_000), images),
    [],
    'not where it only stays short'
  )
  t.same(decided([use('one', 'a', 63), quiet], lasting, images), [], 'nor for a little that it has written')
  t.same(decided([use('one', 'a', 64), quiet], lasting, images), ['remove one'])
  t.same(decided([use('one', 'a', 60), use('two', 'a', 4), use('bare', 'a', 0), quiet], lasting, images), [
    'remove one'
  ])
})

test('nobody is restarted for what images take that run', async t => {
  const stored = [image('of one', 'a', 2000, 'one')]
  const at = (lostMib: number) => room(300, lostMib, 60_000)
  const uses = [use('one', 'a', 10), use('two', 'b', 10)]
  const verdicts = (lostMib: number) =>
    decideDiskUse(uses, none, at(lostMib), noneRestarted, { caches: [], stored, records: [] }).map(words)
  t.same(verdicts(10), [])
  t.same(verdicts(300), ['restart one'], 'unless something went that nothing accounts for')
})

test('one that writes faster than images go does not wait for them', async t => {
  const taker = use('taker', 'a', 900, 900)
  const names = Array.from({ length: 50 }, (_, n) => `image ${n}`)
  const images = {
    caches: [],
    stored: names.map(name => image(name, 'a', 1)),
    records: names.map(name => record(name, name))
  }
  t.equal(decided([taker, quiet], room(201, 900), images).length, 20, 'no more at once than take a second')
  t.same(decided([taker, quiet], room(199, 900), images).slice(19), ['release image 19', 'remove taker'])
})

test('where inodes end first, images do not count', async t => {
  const short = { ...room(386, 400), bytesPerInode: 16_384 }
  const maker = { ...use('maker', 'b', 0), inodes: 30_000, grownInodes: 30_000 }
  const images = { caches: [], stored: [image('old', 'a', 5000)], records: [record('old', 'app')] }
  t.same(decided([maker], short, images), ['remove maker'])
  t.equal(givesNow([maker], short, images), undefined)
})

test('the reasons tell of images', async t => {
  const taker = use('taker', 'a', 125, 125)
  const stored = [image('now', 'a', 990, 'taker')]
  const [removal] = decideDiskUse([taker, quiet], none, growing, noneRestarted, {
    caches: [],
    stored,
    records: []
  })
  t.match(
    removal?.kind === 'remove' && reasonOf(removal, none, growing),
    /removed, 125 MiB: 386 MiB were left .* held most of it, 1115 MiB, 990 MiB of it in images\. Deployed again/
  )
  const images = {
    caches: [],
    stored: [...stored, image('slug:1', 'a', 10)],
    records: [record('slug:1', 'app')]
  }
  const [release] = decideDiskUse([taker, quiet], none, growing, noneRestarted, images)
  t.match(
    release?.kind === 'release' && releaseReason(release, growing),
    /^The image slug:1 was removed: 386 MiB were left on the disk of all applications, and all applications of the owner of its project together held most of it, 1125 MiB, 1000 MiB of it in images\. .* deploy again instead\.$/
  )
})

const kept = (ownerId: string, mib: number): KnownStores => ({
  caches: [{ ownerId, bytes: mib * mebi }],
  stored: [],
  records: []
})

test('who holds most in build engines gives way, and not who writes', async t => {
  const own = use('own', 'a', 100)
  const writes = use('writes', 'b', 300, 200)
  t.same(decided([own, writes], growing, kept('a', 0)), ['remove writes'])
  t.same(decided([own, writes], growing, kept('a', 190)), ['remove writes'])
  t.same(decided([own, writes], growing, kept('a', 900)), ['remove own'])
  t.same(decided([own, writes], growing, kept('b', 900)), ['remove writes'], 'their own counts, too')
  const [removal] = decideDiskUse([own, writes], none, growing, noneRestarted, kept('a', 900))
  t.match(
    removal?.kind === 'remove' && reasonOf(removal, none, growing),
    /held most of it, 1000 MiB, 900 MiB of it in build engines\. /
  )
})

test('nobody loses containers that give back too little, and the next one goes before the disk is full', async t => {
  const small = ['one', 'two', 'three'].map(name => use(name, 'a', 3))
  const writes = use('writes', 'b', 300, 300)
  const uses = [...small, writes]
  t.same(decided(uses, room(386, 300), kept('a', 900)), [], 'the builds of the owner end at the floor')
  t.same(decided(uses, room(201, 300), kept('a', 900)), [])
  t.same(
    decided(uses, room(199, 300), kept('a', 900)),
    ['remove writes'],
    'what has not helped until then does not'
  )
  t.same(
    decided([...uses, use('much', 'a', 450)], room(199, 300), kept('a', 900)),
    ['remove much'],
    'who can give way does'
  )
  t.same(
    decided(uses, { ...lasting, freeBytes: 350 * mebi }, kept('a', 900)),
    [],
    'less than the floor is little'
  )
  t.same(
    decided([...small, use('large', 'c', 500)], { ...lasting, freeBytes: 350 * mebi }, kept('a', 900)),
    ['remove large'],
    'nor does a cache that cannot go keep a disk short for good'
  )
})

test('where inodes end first, build engines do not count', async t => {
  const short = { ...room(386, 400), bytesPerInode: 16_384 }
  const maker = { ...use('maker', 'b', 0), inodes: 30_000, grownInodes: 30_000 }
  t.same(decided([maker], short, kept('a', 5000)), ['remove maker'])
})

test('on a small disk little growth tells who takes the last of it', async t => {
  const at = { freeBytes: 140 * mebi, floorBytes: 128 * mebi, lostBytes: 40 * mebi, shortMs: 0 }
  const none = kept('a', 0)
  t.same(decided([use('writes', 'a', 300, 40)], at, none), ['remove writes'])
  t.same(decided([use('writes', 'a', 300, 15)], at, none), [])
})
