import { test } from 'tap'
import {
  type DiskRoom,
  type DiskUse,
  type DiskUseLimits,
  type DiskVerdict,
  decideDiskUse,
  isTelling
} from '../disk/disk-use-decision.js'
import { backReason, reasonOf } from '../disk/disk-use-words.js'
import { noneRestarted, Restarts } from '../disk/restarts.js'

const mebi = 2 ** 20
const limits: DiskUseLimits = { bytes: 1000 * mebi, inodes: 500 }
const none: DiskUseLimits = { bytes: 0, inodes: 0 }
const use = (id: string, ownerId: string, mib: number, grownMib = 0, isRunning = true): DiskUse => ({
  id,
  ownerId,
  // Each in a project of its own.
  owner: { projectId: `project of ${id}` },
  isRunning,
  bytes: mib * mebi,
  grownBytes: grownMib * mebi,
  namelessBytes: 0,
  inodes: 0,
  grownInodes: 0,
  names: 0,
  isCut: false
})
const files = (id: string, ownerId: string, inodes: number, grownInodes = 0): DiskUse => ({
  ...use(id, ownerId, 0),
  inodes,
  names: inodes,
  grownInodes
})
const room = (freeMib: number, lostMib: number, shortMs = 0): DiskRoom => ({
  freeBytes: freeMib * mebi,
  floorBytes: 1024 * mebi,
  lostBytes: lostMib * mebi,
  shortMs
})
const verdictWords = (verdict: DiskVerdict): string =>
  `${verdict.kind} ${verdict.kind === 'release' ? verdict.image.reference : verdict.use.id}`
/** As if each had been restarted, but for what is to be seen of that. */
const decided = (
  uses: readonly DiskUse[],
  of: DiskUseLimits,
  at: DiskRoom | undefined,
  lately: ReadonlySet<string> = new Set(uses.map(({ id }) => id))
) => decideDiskUse(uses, of, at, { ...noneRestarted, lately }).map(verdictWords)

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

test('near the floor the owner gives way whose containers hold most, whoever has written last', async t => {
  const nearly = room(1500, 150)
  const many = (count: number, mib: number, grownMib = 0) =>
    Array.from({ length: count }, (_, index) => use(`${index}`, `owner ${index}`, mib, grownMib))
  const small = (ownerId: string, count: number, mib: number) =>
    Array.from({ length: count }, (_, index) => use(`${ownerId}${index}`, ownerId, mib))
  const cases: ReadonlyArray<readonly [what: string, uses: readonly DiskUse[], expected: readonly string[]]> =
    [
      [
        'who has filled the disk and waited, not who writes a little then',
        [use('large', 'a', 1240), use('small', 'b', 350, 150)],
        ['remove large']
      ],
      [
        'however many others there are that hold next to nothing',
        [use('large', 'a', 1240), use('small', 'b', 350, 150), ...many(100, 1)],
        ['remove large']
      ],
      [
        'several projects of an owner count together',
        [use('one', 'a', 500), use('two', 'a', 600), use('single', 'b', 700, 150)],
        ['remove two']
      ],
      [
        'of those that hold as good as the same, it is who has grown',
        [use('old', 'a', 1000), use('new', 'b', 901, 200), use('c', 'c', 10)],
        ['remove new']
      ],
      [
        'but not one that has less than that',
        [use('old', 'a', 1000), use('new', 'b', 899, 200), use('c', 'c', 10)],
        ['remove old']
      ],
      [
        'nor one that has less than its share of all',
        [...many(10, 1000), use('new', 'b', 950, 200)],
        ['remove 0']
      ],
      ['where all hold the same and have grown as much, it is one of them', many(10, 100, 15), ['remove 0']],
      [
        'where nobody else has anything, it is the one that has, be it little',
        [use('none', 'b', 0), use('only', 'a', 100, 100)],
        ['remove only']
      ],
      [
        'of many small containers of an owner as many as give back what is missing',
        [...small('a', 100, 10), use('b', 'b', 300, 150)],
        ['remove a0', 'remove a1', 'remove a2', 'remove a3']
      ],
      [
        'but only while they hold more than those of the next owner',
        [...small('a', 32, 10), use('b', 'b', 300, 150)],
        ['remove a0', 'remove a1']
      ],
      ['without containers nobody', [], []]
    ]
  for (const [what, uses, expected] of cases) t.same(decided(uses, none, nearly), expected, what)
  t.same(
    decided([use('large', 'a', 1240), use('small', 'b', 350, 150)], none, room(1536, 150)),
    [],
    'with half as much again as the floor there is time'
  )
})

test('what is over its limit and gives way is removed, and not stopped first', async t => {
  t.same(decided([use('over', 'a', 2000, 2000), use('other', 'b', 1001)], limits, room(1000, 2000)), [
    'stop other',
    'remove over'
  ])
})

test('nothing goes while what is missing was taken by something else', async t => {
  const uses = [use('a', 'a', 900, 499)]
  t.same(decided(uses, limits, room(500, 1000)), [])
  t.same(decided([use('a', 'a', 900, 500)], limits, room(500, 1000)), ['remove a'], 'half of it tells')
  t.same(decided([use('a', 'a', 900, 63)], limits, room(500, 63)), [], 'a little growth is no reason')
  t.same(decided([], limits, room(500, 0)), [])
})

test('on a disk that stays short the owner gives way whose containers hold most', async t => {
  const uses = [use('small', 'a', 600), use('larger', 'a', 700), use('b', 'b', 1000)]
  t.same(decided(uses, none, room(1000, 0, 29_999)), [], 'builds and caches go first')
  t.same(decided(uses, none, room(1000, 0, 30_000)), ['remove larger'])
  t.same(decided([use('b', 'b', 1023)], none, room(1000, 0, 60_000)), [], 'not for less than the floor')
  t.same(decided([use('b', 'b', 1024)], none, room(1000, 0, 60_000)), ['remove b'])
})

test('before anybody loses files for what nothing accounts for, all are restarted in turn, to see what comes back', async t => {
  const lasting = room(300, 1200, 30_000)
  const hides = use('hides', 'a', 0)
  const honest = use('honest', 'b', 1100)
  const uses = [honest, hides]
  t.same(decided(uses, none, lasting, new Set()), ['restart honest'])
  t.same(decided([honest, { ...hides, isCut: true }], none, lasting, new Set()), ['restart hides'])
  t.same(decided(uses, none, lasting, new Set(['honest'])), ['restart hides'])
  t.same(decided(uses, none, lasting), ['remove honest'], 'when nothing came back of any')
  t.same(decided(uses, none, room(300, 1200, 29_999), new Set()), [], 'not at once')
  t.same(
    decided([use('grows', 'a', 1100, 1100), hides], none, lasting, new Set()),
    ['remove grows'],
    'nor where it is known who it was'
  )
  t.same(
    decided([use('ended', 'b', 1100, 0, false), use('small', 'a', 3)], none, lasting, new Set(['small'])),
    ['remove ended'],
    'one that does not run hides nothing'
  )
  t.same(
    decided([use('small', 'a', 3), use('other', 'b', 4)], none, room(300, 10, 60_000), new Set()),
    [],
    'what was there before they were is not of them'
  )
  t.same(
    decided([{ ...use('small', 'a', 3), isCut: true }], none, room(300, 10, 60_000), new Set()),
    ['restart small'],
    'unless one could not be looked through'
  )
  t.equal(isTelling(200 * mebi, room(300, 0)), true)
  t.equal(isTelling(180 * mebi, room(300, 0)), false, 'a quarter of what is missing')
  t.equal(isTelling(63 * mebi, room(1020, 0)), false, 'a little may be of others')
  t.match(backReason(1150 * mebi), /was restarted.*: when its processes ended 1150 MiB came back/)
})

test('of whom much came back before is restarted first, and of whom nothing did is spared, unless files are at stake', async t => {
  const [gave, vain, other] = [
    use('gave', 'a', 3),
    use('vain', 'b', 3),
    { ...use('other', 'c', 3), isCut: true }
  ]
  const at = room(300, 1200, 30_000)
  const restarts = new Restarts()
  const next = (uses: readonly DiskUse[], now: number) =>
    decideDiskUse(uses, none, at, restarts.at(now)).map(verdictWords)
  restarts.noteAsked('gave')
  restarts.noteBack('gave', true, 0)
  restarts.noteAsked('vain')
  restarts.noteBack('vain', false, 0)
  t.same(next([vain, other, gave], 1), ['restart other'], 'once while the disk stays short')
  restarts.noteRoom()
  t.same(next([vain, other, gave], 1), ['restart gave'])
  t.same(next([vain], 1), [])
  t.same(next([vain], 6 * 3_600_000), ['restart vain'])
  restarts.noteBack('vain', false, 7 * 3_600_000)
  t.same(
    next([vain, use('holds', 'd', 1100)], 7 * 3_600_000),
    ['restart vain'],
    'before somebody loses files'
  )
})

test('a running container that has made more files than it may is stopped, by their names', async t => {
  const uses = [files('at', 'a', 500), files('over', 'a', 501)]
  t.same(decided(uses, limits, room(9000, 0)), ['stop over'])
  t.same(decided(uses, none, room(9000, 0)), [], '0 is no limit')
  const [verdict] = decideDiskUse(uses, limits, undefined)
  t.match(verdict, { of: 'inodes' })
  t.same(decided([{ ...files('links', 'a', 2), names: 501 }], limits, undefined), ['stop links'])
})

test('one whose files could not be counted in time is stopped, if it is not the machine that is slow', async t => {
  const cut = (names: number) => ({ ...files('slow', 'a', 1), names, isCut: true })
  t.same(decided([cut(126)], limits, room(9000, 0)), ['stop slow'])
  t.same(decided([cut(125)], limits, room(9000, 0)), [])
  t.same(decided([cut(126)], none, room(9000, 0)), [])
})

test('where inodes end first, the owner gives way whose containers have made most', async t => {
  const short: DiskRoom = { ...room(1000, 1000), bytesPerInode: 16_384 }
  const uses = [
    { ...use('writer', 'other', 5000, 5000), grownInodes: 10 },
    { ...files('links', 'linker', 10, 10), names: 900_000 },
    files('old', 'taker', 90_000, 10),
    files('one', 'taker', 30_000, 30_000),
    files('new', 'second', 50_000, 50_000)
  ]
  t.same(decided(uses, none, short), ['remove old'])
  t.same(decided([files('a', 'a', 31_999, 31_999)], none, short), [], 'less than half tells nothing')
  t.same(decided([files('a', 'a', 32_000, 32_000)], none, short), ['remove a'])
  const lasting = { ...short, shortMs: 30_000 }
  t.same(decided([files('a', 'a', 65_536)], none, lasting), ['remove a'], 'the largest where nothing grows')
  t.same(decided([files('a', 'a', 65_535)], none, lasting), [])
})

test('the reasons are what was decided by', async t => {
  const reasons = (uses: readonly DiskUse[], at: DiskRoom | undefined) =>
    decideDiskUse(uses, limits, at).map(verdict =>
      verdict.kind === 'stop' || verdict.kind === 'remove' ? reasonOf(verdict, limits, at) : ''
    )
  const [most] = reasons(
    [use('large', 'a', 900), use('more', 'a', 340), use('b', 'b', 350, 150)],
    room(318, 150)
  )
  t.match(most, /removed, 900 MiB: 318 MiB were left .* of the owner .* held most of it, 1240 MiB\./)
  const [growth] = reasons(
    [use('old', 'a', 1000), use('new', 'b', 950, 200), use('c', 'c', 1)],
    room(1500, 200)
  )
  t.match(growth, /950 MiB: .* held as good as most of it, 950 MiB, and had taken more of it lately/)
  const [inodes] = reasons([files('a', 'a', 400, 400)], { ...room(1, 400), bytesPerInode: mebi })
  t.match(inodes, /400 files and directories: .* had room for 1 more, .* held most of it, 400 files/)
  const [links] = reasons([{ ...files('a', 'a', 10), names: 501 }], undefined)
  t.match(links, /has made 501 files and directories .* \(hard links too\), and 500 are allowed/)
  const [time] = reasons([{ ...files('a', 'a', 10), names: 300, isCut: true }], undefined)
  t.match(time, /more than 300 files and directories .* could not be counted in time\), and 500 are allowed/)
})
