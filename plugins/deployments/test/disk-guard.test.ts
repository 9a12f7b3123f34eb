import { setImmediate as turn } from 'node:timers/promises'
import type { EngineDisk } from 'busbar/api/builds'
import type { ContainerDiskUse, ContainerFileUse } from 'busbar/api/containers'
import type { ImageUse } from 'busbar/api/images'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { DiskGuard } from '../disk/disk-guard.js'
import type { ImageRecord } from '../disk/image-holdings.js'
import { pauseMs } from '../disk/look-pauses.js'

const use = (id: string, bytes = 2000): ContainerDiskUse => ({
  id,
  owner: { projectId: id },
  isRunning: true,
  bytes,
  isLate: false
})
const files = (id: string, inodes: number): ContainerFileUse => ({
  id,
  owner: { projectId: id },
  isRunning: true,
  inodes,
  names: inodes,
  recentInodes: inodes,
  bytes: 0,
  recentBytes: 0,
  namelessBytes: 0,
  isCut: false
})
const written = (id: string, mib: number, recentMib: number): ContainerFileUse => ({
  ...files(id, 10),
  bytes: mib * mebi,
  recentBytes: recentMib * mebi
})

/** Looks at each of the disks in turn, at the last one until it is enough, and says what it asked of the engine and what it warned of. */
async function looked(
  disks: ReadonlyArray<EngineDisk | undefined>,
  parts: {
    uses?: readonly ContainerDiskUse[]
    diskUse?: () => Promise<readonly ContainerDiskUse[]>
    fileUse?: () => Promise<readonly ContainerFileUse[]>
    owners?: () => Promise<ReadonlyMap<string, string>>
    imageUse?: () => Promise<readonly ImageUse[]>
    records?: readonly ImageRecord[]
    onRelease?: (reference: string) => void
    /** What becomes free when caches go. */
    roomMib?: number
    makeRoom?: () => Promise<void>
    /** Instead of `disks`. */
    read?: () => EngineDisk
    /** By project, what build engines hold, before and after caches have gone. */
    caches?: { before: Record<string, number>; after: Record<string, number> }
    limits?: { bytes: number; inodes: number }
    isEnough: (asked: readonly string[], warned: readonly string[], readsSinceRoom: number) => boolean
  }
): Promise<{ asked: string[]; warned: string[]; rooms: number }> {
  const end = new AbortController()
  const asked: string[] = []
  const warned: string[] = []
  let rooms = 0
  let isRoomMade = false
  let readsSinceRoom = 0
  const silent = () => {}
  const left = [...disks]
  const guard = new DiskGuard({
    runtime: {
      diskUse: async () => {
        asked.push('bytes')
        return (await parts.diskUse?.()) ?? parts.uses ?? []
      },
      fileUse: async () => {
        asked.push('files')
        return (await parts.fileUse?.()) ?? []
      },
      stop: async (id: string) => {
        asked.push(`stop ${id}`)
        if (id === 'stuck') throw new Error('the engine does not stop it')
      },
      restart: async (id: string) => {
        asked.push(`restart ${id}`)
      },
      remove: async (id: string, options?: { readonly onGone?: () => Promise<void> }) => {
        asked.push(`remove ${id}`)
        await options?.onGone?.()
      }
    },
    engineDisk: {
      read: async () => {
        if (parts.read !== undefined) return parts.read()
        const seen = left.length > 1 ? left.shift() : left[0]
        if (isRoomMade) readsSinceRoom++
        return seen === undefined || !isRoomMade
          ? seen
          : { ...seen, freeBytes: seen.freeBytes + (parts.roomMib ?? 0) * mebi }
      },
      makeRoom: async () => {
        rooms++
        if (parts.makeRoom !== undefined) return await parts.makeRoom()
        for (let turns = 0; turns < 100; turns++) await turn()
        isRoomMade = true
      },
      caches: async () =>
        Object.entries((isRoomMade ? parts.caches?.after : parts.caches?.before) ?? {}).map(
          ([projectId, mib]) => ({ projectId, bytes: mib * mebi })
        )
    },
    imageService: { imageUse: parts.imageUse ?? (async () => []) },
    prepared: {
      fetched: async () => [],
      release: async (_applicationId: string, reference: string) => {
        asked.push(`release ${reference}`)
        parts.onRelease?.(reference)
      }
    },
    imageRecords: { ownersOf: async () => new Map(), of: async () => parts.records ?? [] },
    limits: parts.limits ?? { bytes: 0, inodes: 0 },
    clock: {
      now: () => new Date(),
      sleep: async () => {
        await turn()
      }
    },
    log: {
      debug: silent,
      info: silent,
      warn: (_fields: object, text: string) => {
        warned.push(text)
      },
      error: silent
    },
    store: { change: async () => {}, ownersOfProjects: parts.owners ?? (async () => new Map()) }
  } as unknown as ConstructorParameters<typeof DiskGuard>[0])
  const running = guard.run(end.signal)
  try {
    await until(
      () => parts.isEnough(asked, warned, readsSinceRoom),
      'the guard to have done what it is to do'
    )
  } finally {
    end.abort()
    await running
  }
  return { asked, warned, rooms }
}

/** Its inodes end first. */
const mebi = 2 ** 20
const disk = (free: number): EngineDisk => ({
  freeBytes: Math.min(free * 16_384, 100_000 * mebi),
  floorBytes: 1000 * mebi,
  inodes: { free, bytesEach: 16_384 }
})

test('a container that cannot be stopped does not keep others from being stopped', async t => {
  const { asked } = await looked([undefined], {
    uses: [use('stuck'), use('other')],
    limits: { bytes: 1000, inodes: 0 },
    isEnough: calls => calls.includes('stop other')
  })
  t.same(asked.slice(0, 3), ['bytes', 'stop stuck', 'stop other'])
})

test('files are not counted while there is room, nor bytes where inodes are what is short', async t => {
  const { asked } = await looked([disk(6_000_000), disk(5_900_000), disk(60_000)], {
    uses: [use('old', 500)],
    fileUse: async () => [files('taker', 5_000_000), files('old', 900)],
    isEnough: calls => calls.includes('remove taker')
  })
  const firstCount = asked.indexOf('files')
  t.ok(firstCount > 0 && asked.slice(0, firstCount).every(one => one === 'bytes'))
  t.equal(asked[firstCount + 1], 'remove taker')
})

test('files are counted with room where one may have made more than it may', async t => {
  const { asked } = await looked([disk(6_000_000), disk(5_900_000), disk(5_700_000)], {
    fileUse: async () => [files('over', 1001), files('at', 1000)],
    limits: { bytes: 0, inodes: 1000 },
    isEnough: calls => calls.includes('stop over')
  })
  t.same(asked.slice(0, 4), ['bytes', 'bytes', 'files', 'stop over'])
})

test('where files cannot be counted, nobody goes for it and the log says so once', async t => {
  const { asked, warned } = await looked([disk(6_000_000), disk(60_000), disk(60_000), disk(60_000)], {
    uses: [use('innocent', 500)],
    fileUse: async () => await Promise.reject(new Error('there is no find')),
    isEnough: calls => calls.filter(one => one === 'files').length > 2
  })
  t.notOk(asked.some(one => one.startsWith('remove')))
  t.equal(warned.filter(text => text.includes('cannot be counted')).length, 1)
})

const firstRemoved = (asked: readonly string[]) =>
  /^remove (.*)$/.exec(asked.find(one => one.startsWith('remove')) ?? '')?.[1]

/** Its bytes end first. */
const bytesDisk = (freeMib: number): EngineDisk => ({
  freeBytes: freeMib * mebi,
  floorBytes: 1000 * mebi,
  inodes: { free: 6_000_000, bytesEach: 16_384 }
})

test('who has written much and waited goes before who writes a little then', async t => {
  const { asked } = await looked([bytesDisk(1520), bytesDisk(1370)], {
    uses: [use('large', 1240 * mebi), use('small', 200 * mebi)],
    fileUse: async () => [written('large', 1240, 0), written('small', 350, 150)],
    isEnough: calls => calls.some(call => call.startsWith('remove'))
  })
  t.same(asked.slice(0, 3), ['bytes', 'files', 'remove large'])
})

test('the projects of an owner count together, also while the database does not say whose they are', async t => {
  let isAway = false
  const { asked } = await looked([bytesDisk(1520), bytesDisk(1370)], {
    uses: [use('one', 700 * mebi), use('two', 700 * mebi), use('single', 800 * mebi)],
    owners: async () => {
      if (isAway) throw new Error('the database has no room')
      isAway = true
      return new Map([
        ['one', 'a'],
        ['two', 'a'],
        ['single', 'b']
      ])
    },
    fileUse: async () => [written('one', 700, 0), written('two', 710, 0), written('single', 950, 150)],
    isEnough: calls => calls.some(call => call.startsWith('remove'))
  })
  t.ok(isAway)
  t.equal(firstRemoved(asked), 'two')
})

test('one that the engine does not measure in time has its files counted, and is stopped for their number', async t => {
  const { asked } = await looked([bytesDisk(9000)], {
    uses: [{ ...use('farm', 0), isLate: true }, use('other', 500)],
    fileUse: async () => [{ ...files('farm', 30), names: 400, isCut: true }, files('other', 30)],
    limits: { bytes: 0, inodes: 1000 },
    isEnough: calls => calls.includes('stop farm')
  })
  t.same(asked.slice(0, 3), ['bytes', 'files', 'stop farm'])
})

test('a look that took long does not put off the next one near the floor', async t => {
  t.ok(pauseMs({ tookMs: 30_000, isNear: true, lostBytes: 0 }) <= 10_000)
  t.ok(pauseMs({ tookMs: 30_000, isNear: true, lostBytes: 100 * mebi }) <= 2000)
  t.equal(pauseMs({ tookMs: 100, isNear: true, lostBytes: 0 }), 500)
  t.ok(pauseMs({ tookMs: 30_000, isNear: false, lostBytes: 0 }) <= 300_000)
  t.equal(pauseMs({ tookMs: 100, isNear: false, lostBytes: 0 }), 5000)
})

test('of one for which there was no time, what was known before counts', async t => {
  let counts = 0
  const { asked } = await looked([bytesDisk(1520), bytesDisk(1490), bytesDisk(1300)], {
    uses: [use('large', 1240 * mebi), use('small', 200 * mebi)],
    fileUse: async () => {
      counts++
      return counts === 1
        ? [written('large', 1240, 0), written('small', 230, 30)]
        : [{ ...written('large', 3, 0), isCut: true }, written('small', 420, 220)]
    },
    isEnough: calls => calls.some(call => call.startsWith('remove'))
  })
  t.ok(counts >= 2)
  t.equal(firstRemoved(asked), 'large')
})

const stored = (name: string, mib: number): ImageUse => ({
  id: name,
  names: [name],
  owner: { projectId: 'large' },
  containerIds: [],
  parts: [{ id: name, bytes: mib * mebi }]
})
const recorded = (reference: string): ImageRecord => ({
  applicationId: 'app',
  deploymentId: `deployment of ${reference}`,
  reference,
  isActive: false,
  isServing: false
})

/** Of the owner of what is large; one of them the engine does not remove. */
const spareImages = ['newest:1', 'stuck:1', 'oldest:1']

test('images that nothing runs from go first, and one that cannot keeps no container', async t => {
  const there = new Set(spareImages)
  const { asked, warned, rooms } = await looked([bytesDisk(1520), bytesDisk(1370)], {
    uses: [use('large', 240 * mebi), use('small', 700 * mebi)],
    fileUse: async () => [written('large', 390, 150), written('small', 700, 0)],
    imageUse: async () => [...there].map(name => stored(name, 330)),
    records: spareImages.map(recorded),
    onRelease: reference => {
      if (reference === 'stuck:1') throw new Error('the engine does not remove it')
      there.delete(reference)
    },
    isEnough: calls => calls.some(call => call.startsWith('remove'))
  })
  t.same(asked.filter(call => call.startsWith('re')).slice(0, 4), [
    'release oldest:1',
    'release stuck:1',
    'release newest:1',
    'remove large'
  ])
  t.match(
    warned.filter(text => text.includes(':1')),
    [/The image oldest:1 was removed/, /the image stuck:1, .* could not be removed/, /The image newest:1/]
  )
  t.ok(rooms > 0, 'caches go meanwhile')
})

test('where the engine does not say what images take, what was known counts, and the log says so once', async t => {
  let calls = 0
  const { asked, warned } = await looked([bytesDisk(1520), bytesDisk(1370)], {
    uses: [use('large', 240 * mebi), use('small', 700 * mebi)],
    fileUse: async () => [written('large', 390, 150), written('small', 700, 0)],
    imageUse: async () => {
      calls++
      if (calls > 1) throw new Error('the engine is busy')
      return spareImages.map(name => stored(name, 330))
    },
    records: spareImages.map(recorded),
    isEnough: done => done.some(call => call.startsWith('remove'))
  })
  t.ok(calls > 2)
  t.equal(firstRemoved(asked), 'large')
  t.equal(warned.filter(text => text.includes('going by what was known')).length, 1)
})

test('while there is room, nothing is asked of images, and caches stay', async t => {
  const { rooms } = await looked([bytesDisk(9000), bytesDisk(8000), bytesDisk(7000)], {
    uses: [use('large', 240 * mebi)],
    imageUse: async () => await Promise.reject(t.fail('it is asked for')),
    isEnough: calls => calls.length > 1
  })
  t.equal(rooms, 0)
})

test('nobody loses for what caches give back a moment later', async t => {
  const { asked, rooms } = await looked([bytesDisk(1520), bytesDisk(1370)], {
    uses: [use('writer', 200 * mebi)],
    fileUse: async () => [written('writer', 350, 150)],
    roomMib: 1500,
    isEnough: (_asked, _warned, readsSinceRoom) => readsSinceRoom > 10
  })
  t.ok(rooms > 0)
  t.notOk(asked.some(call => call.startsWith('re')))
})

test('caches that do not go keep nobody from giving way, late or early', async t => {
  const hangs = async (): Promise<void> => await new Promise(() => {})
  const fails = async (): Promise<void> => await Promise.reject(new Error('builds are off'))
  for (const [makeRoom, freeMib] of [
    [hangs, 490],
    [hangs, 240],
    [fails, 1370]
  ] as const) {
    const { asked } = await looked([bytesDisk(1520), bytesDisk(freeMib)], {
      uses: [use('writer', 200 * mebi)],
      fileUse: async () => [written('writer', 200 + 1520 - freeMib, 1520 - freeMib)],
      makeRoom,
      isEnough: calls => calls.some(call => call.startsWith('remove'))
    })
    t.equal(firstRemoved(asked), 'writer', `${freeMib} MiB are free`)
  }
})

test('it is decided by what is measured after caches have gone', async t => {
  let mib = 450
  const { asked } = await looked([bytesDisk(1520), bytesDisk(1370)], {
    uses: [use('first', 200 * mebi), use('second', 400 * mebi)],
    fileUse: async () => [written('first', mib, mib - 200), written('second', 400, 0)],
    makeRoom: async () => {
      for (let turns = 0; turns < 100; turns++) await turn()
      // Its author has removed what it had written, and another one has written more.
      mib = 300
    },
    isEnough: calls => calls.some(call => call.startsWith('remove'))
  })
  t.equal(firstRemoved(asked), 'second')
  t.same(asked.slice(0, 3), ['bytes', 'files', 'remove second'], 'and files are counted once for it')
})

test('what is written while containers are measured with room counts as growth afterwards', async t => {
  let free = 2000
  let measured = 0
  const { asked } = await looked([], {
    read: () => bytesDisk(free),
    diskUse: async () => {
      measured++
      // By the second time much is missing, and the rest of it goes meanwhile.
      free = measured === 1 ? 1700 : 1370
      return [use('writer', (measured === 1 ? 200 : 830) * mebi)]
    },
    fileUse: async () => [written('writer', 830, 630)],
    limits: { bytes: 1000 * mebi, inodes: 0 },
    isEnough: calls => calls.some(call => call.startsWith('remove'))
  })
  t.equal(firstRemoved(asked), 'writer')
})

/** Of 560 MiB, with a floor of 128: one writes, in steps, and goes on while it is looked at. */
async function writtenFull(steps: { readonly all: number; readonly each: number; readonly cache: number }) {
  const left = { image: 100, cache: steps.cache, old: 110 }
  let wrote = 0
  let looks = 0
  const freeMib = () => 560 - 4 - 120 - left.image - left.cache - left.old - wrote
  const write = () => {
    wrote += Math.min(steps.each, steps.all - wrote, freeMib())
  }
  /** What is found is of before it was asked for. */
  const seen = () => {
    const found = [written('quiet', 120, 0), written('large', wrote, wrote), written('old', left.old, 0)]
    write()
    return found
  }
  const { asked } = await looked([], {
    read: () => {
      looks++
      if (looks > 3) write()
      return { freeBytes: freeMib() * mebi, floorBytes: 128 * mebi }
    },
    owners: async () =>
      new Map([
        ['quiet', 'b'],
        ['large', 'a'],
        ['old', 'a']
      ]),
    diskUse: async () => seen().map(({ id, bytes }) => use(id, bytes)),
    fileUse: async () => seen(),
    imageUse: async () => (left.image > 0 ? [stored('old:1', left.image)] : []),
    records: [recorded('old:1')],
    onRelease: () => {
      left.image = 0
    },
    makeRoom: async () => {
      for (let turns = 0; turns < 20; turns++) await turn()
      // The version before it is stopped meanwhile.
      Object.assign(left, { cache: 0, old: 0 })
    },
    isEnough: calls => calls.includes('remove large') || calls.includes('remove quiet')
  })
  return asked
}

test('who fills a small disk gives way in the end, however fast it is written', async t => {
  for (const all of [300, 360])
    for (const each of [5, 20, 60, 100, 150, 400])
      for (const cache of [0, 40]) {
        const asked = await writtenFull({ all, each, cache })
        t.notOk(asked.includes('remove quiet'), `${all} MiB, ${each} at a time, beside a cache of ${cache}`)
      }
})

test('what the build engine of a project holds and keeps counts for its owner', async t => {
  const owners = async () =>
    new Map([
      ['web', 'a'],
      ['builds', 'a'],
      ['writer', 'b']
    ])
  const parts = {
    uses: [use('web', 100 * mebi), use('writer', 200 * mebi)],
    fileUse: async () => [written('web', 100, 0), written('writer', 350, 150)],
    owners,
    isEnough: (calls: readonly string[]) => calls.some(call => call.startsWith('remove'))
  }
  const disks = [bytesDisk(1520), bytesDisk(1370)]
  const held = await looked(disks, { ...parts, caches: { before: { builds: 900 }, after: { builds: 900 } } })
  t.equal(firstRemoved(held.asked), 'web')
  t.match(
    held.warned.find(text => text.includes('It was stopped')),
    /1000 MiB, 900 MiB of it in build engines/
  )
  const gone = await looked(disks, { ...parts, caches: { before: { builds: 900 }, after: {} } })
  t.equal(firstRemoved(gone.asked), 'writer', 'what has just gone does not')
})
