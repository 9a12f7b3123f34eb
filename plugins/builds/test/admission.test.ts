import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { Admission } from '../admission/admission.js'
import { decide, type Machine } from '../admission/admission-decision.js'
import { freeOf, readMachine } from '../admission/admission-readings.js'
import { AdmittedPreparation } from '../admission/admitted-preparation.js'
import type { ImagePreparation, ImageRequest, RunningBuild } from '../api.js'
import { RoomMaker } from '../disk/room-maker.js'
import { type BuildSettings, buildSlots } from '../settings.js'
import { clock, folder, recorder } from './kit.js'

const mib = 2 ** 20
const gib = 2 ** 30

const settings: BuildSettings = { checkout_mib: 2048, disk_floor_mib: 1024, wait_minutes: 60 }
const calm = { cpuSome: 0, memoryFull: 0, ioFull: 0 }
const machine = (changes: Partial<Machine> = {}): Machine => ({
  cores: 8,
  memoryBytes: 16 * gib,
  availableBytes: 12 * gib,
  own: undefined,
  disks: [
    { what: 'the disk of the Docker Engine', path: '/var/lib/docker', freeBytes: 50 * gib, isEngines: true }
  ],
  pressure: calm,
  ...changes
})
/** 1 GiB and one core, 300 MiB of it free. */
const small = machine({ cores: 1, memoryBytes: gib, availableBytes: 500 * mib })

/** As many builds as their promises, in MiB. */
const running = (...promised: number[]): RunningBuild[] =>
  promised.map((memory, index) => ({ id: `r${index}`, projectId: `p${index}`, memoryBytes: memory * mib }))

interface Row {
  readonly what: string
  readonly machine?: Machine
  readonly running?: RunningBuild[]
  readonly settings?: Partial<BuildSettings>
  readonly waitedMs?: number
  readonly wanted: object
}

const rows: readonly Row[] = [
  {
    what: 'an idle machine admits with the caps of every build',
    wanted: {
      kind: 'admit',
      limits: { memoryBytes: Math.floor((16 * gib * 0.6) / 4), cpus: 1.87 },
      note: null
    }
  },
  {
    what: 'a second one is admitted where both have room',
    running: running(2457),
    wanted: { kind: 'admit', note: null }
  },
  {
    what: 'as many as there are places',
    running: running(2457, 2457, 2457, 2457),
    wanted: {
      kind: 'wait',
      cause: 'builds',
      reason: 'waiting for another build to end: 4 builds are running, and this machine takes 4 at once'
    }
  },
  {
    what: 'the number of places can be set',
    running: running(1024),
    settings: { concurrent: 1 },
    wanted: { kind: 'wait', cause: 'builds', reason: /1 build is running, and this machine takes 1 at once/ }
  },
  {
    what: 'what is short is said in figures',
    machine: machine({ availableBytes: 8 * gib }),
    running: running(2457, 2457),
    wanted: { kind: 'wait', cause: 'memory', reason: 'waiting for 204 MiB of memory: 2 builds are running' }
  },
  {
    what: 'a reserve stays free for the applications',
    machine: machine({ availableBytes: 8 * gib }),
    running: running(2457, 2457),
    settings: { reserve_mib: 0 },
    wanted: { kind: 'admit' }
  },
  {
    what: 'the sum of the caps must fit, however much is free',
    machine: machine({ availableBytes: 16 * gib }),
    running: running(5000),
    settings: { memory_mib: 6000, concurrent: 4 },
    wanted: { kind: 'wait', cause: 'memory', reason: /^waiting for 1\.1 GiB of memory: 1 build is running$/ }
  },
  {
    what: 'one build larger than its share is begun alone',
    settings: { memory_mib: 14_000 },
    machine: machine({ availableBytes: 16 * gib }),
    wanted: { kind: 'admit', limits: { memoryBytes: 14_000 * mib } }
  },
  {
    what: 'busy processors hold up a second build',
    running: running(2457),
    machine: machine({ pressure: { ...calm, cpuSome: 95 } }),
    wanted: {
      kind: 'wait',
      cause: 'pressure',
      reason:
        'waiting for the machine to calm down, as its processors are busy (work waited for them 95 % of the time): 1 build is running'
    }
  },
  {
    what: 'busy disks hold up a second build',
    running: running(2457),
    machine: machine({ pressure: { ...calm, ioFull: 45 } }),
    wanted: { kind: 'wait', cause: 'pressure', reason: /disks are busy/ }
  },
  {
    what: 'used-up memory holds up a second build',
    running: running(2457),
    machine: machine({ pressure: { ...calm, memoryFull: 8 } }),
    wanted: { kind: 'wait', cause: 'pressure', reason: /memory is used up/ }
  },
  {
    what: 'busy processors and disks do not hold up the only build',
    machine: machine({ pressure: { cpuSome: 100, memoryFull: 8, ioFull: 90 } }),
    wanted: { kind: 'admit' }
  },
  {
    what: 'a machine that only looks for memory holds up the only build',
    machine: machine({ pressure: { ...calm, memoryFull: 40 } }),
    wanted: { kind: 'wait', cause: 'pressure' }
  },
  {
    what: 'but not for long',
    machine: machine({ pressure: { ...calm, memoryFull: 40 } }),
    waitedMs: 60_000,
    wanted: { kind: 'admit' }
  },
  {
    what: 'a kernel that tells nothing of pressure holds up nobody',
    machine: machine({ pressure: undefined }),
    running: running(2457),
    wanted: { kind: 'admit' }
  },
  {
    what: 'an engine elsewhere is judged by the sums alone',
    machine: machine({ availableBytes: undefined, pressure: undefined }),
    running: running(2457, 2457, 2457),
    wanted: { kind: 'admit' }
  },
  {
    what: 'a lone build on a small machine gets what is free',
    machine: small,
    wanted: {
      kind: 'admit',
      limits: { memoryBytes: 372 * mib, cpus: 0.5 },
      note: 'Only 500 MiB of memory are free, so this build may use 372 MiB instead of 615 MiB'
    }
  },
  {
    what: 'a lone build waits a while when there is next to nothing',
    machine: { ...small, availableBytes: 200 * mib },
    wanted: {
      kind: 'wait',
      cause: 'memory',
      reason:
        'waiting for 184 MiB of memory: only 200 MiB are free, 128 MiB of which are left to the platform and the applications'
    }
  },
  {
    what: 'and is begun with the least then: nothing waits for ever',
    machine: { ...small, availableBytes: 50 * mib },
    waitedMs: 60_000,
    wanted: {
      kind: 'admit',
      limits: { memoryBytes: 256 * mib },
      note: /^Only 50 MiB of memory are free: the build begins with 256 MiB/
    }
  },
  {
    what: 'a small machine builds one at a time',
    machine: small,
    running: running(372),
    wanted: { kind: 'wait', cause: 'builds' }
  },
  {
    what: "the platform's own limit counts",
    machine: machine({ own: { limitBytes: 256 * mib, usedBytes: 230 * mib } }),
    wanted: {
      kind: 'wait',
      cause: 'memory',
      reason:
        /memory for the platform itself, which uses 230 MiB of its limit of 256 MiB: no build is running/
    }
  },
  {
    what: 'unless it never leaves room',
    machine: machine({ own: { limitBytes: 256 * mib, usedBytes: 230 * mib } }),
    waitedMs: 60_000,
    wanted: { kind: 'admit' }
  },
  {
    what: 'a short disk is waited for while builds run that take of it',
    machine: machine({ disks: [{ what: 'x', path: '/', freeBytes: 800 * mib, isEngines: true }] }),
    running: running(500),
    wanted: { kind: 'wait', cause: 'disk', reason: /room on the disk: 1 build is running/ }
  },
  {
    what: 'a short disk is refused, with the remedy',
    machine: machine({
      disks: [{ what: 'the disk of BUSBAR_DIR', path: '/data', freeBytes: 800 * mib, isEngines: false }]
    }),
    waitedMs: 1e9,
    wanted: {
      kind: 'refuse',
      problem: {
        code: 'E_BUILD_DISK_SHORT',
        message:
          /^only 800 MiB are free on the disk of BUSBAR_DIR \(\/data\), and nothing is built or pulled with less than 1\.0 GiB: free space \(.*lower disk_floor_mib/
      }
    }
  },
  {
    what: 'the floor can be lowered',
    machine: machine({ disks: [{ what: 'x', path: '/', freeBytes: 800 * mib, isEngines: true }] }),
    settings: { disk_floor_mib: 500 },
    wanted: { kind: 'admit' }
  }
]

test('whether a build may begin', async t => {
  for (const row of rows) {
    t.match(
      decide({
        machine: row.machine ?? machine(),
        running: row.running ?? [],
        settings: { ...settings, ...row.settings },
        waitedMs: row.waitedMs ?? 0
      }),
      row.wanted,
      row.what
    )
  }
})

test('on every machine the first build is admitted in the end, and together they keep to what builds may have', async t => {
  for (const cores of [1, 2, 4, 16]) {
    for (const memory of [0.5, 1, 2, 4, 8, 64]) {
      for (const free of [0, 0.1, 0.5, 1]) {
        const one = machine({
          cores,
          memoryBytes: memory * gib,
          availableBytes: memory * free * gib,
          pressure: { cpuSome: 100, memoryFull: 100, ioFull: 100 }
        })
        t.equal(
          decide({ machine: one, running: [], settings, waitedMs: 60_000 }).kind,
          'admit',
          `${cores} cores, ${memory} GiB, ${free} free`
        )
      }
      const slots = buildSlots(settings, { cores, memoryBytes: memory * gib })
      t.ok(
        slots.count * slots.each.memoryBytes <= slots.memoryBytes,
        `${slots.count} builds on ${memory} GiB`
      )
      t.ok(
        slots.count * slots.each.cpus <= Math.max(0.5, cores - 0.5),
        `${slots.count} builds on ${cores} cores`
      )
    }
  }
})

/** A folder that stands for `/`, with files under /proc and /sys. */
async function tree(t: Test, files: Readonly<Record<string, string>>): Promise<string> {
  const root = await folder(t)
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  return root
}

const meminfo = 'MemTotal:        8388608 kB\nMemFree:          100000 kB\nMemAvailable:    4194304 kB\n'
const engine = (place: 'here' | 'around' | 'elsewhere') => ({
  cores: 4,
  memoryBytes: 8 * gib,
  dataRoot: '/',
  place
})

test('what is free is read from the kernel', async t => {
  const root = await tree(t, {
    'proc/meminfo': meminfo,
    'proc/pressure/cpu':
      'some avg10=12.34 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
    'proc/pressure/memory':
      'some avg10=9.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=3.50 avg60=0.00 avg300=0.00 total=0\n',
    'proc/pressure/io':
      'some avg10=8.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=7.00 avg60=0.00 avg300=0.00 total=0\n',
    'proc/self/cgroup': '0::/system.slice/busbar.service\n',
    'sys/fs/cgroup/system.slice/busbar.service/memory.max': `${512 * mib}\n`,
    'sys/fs/cgroup/system.slice/busbar.service/memory.current': `${300 * mib}\n`,
    'sys/fs/cgroup/system.slice/busbar.service/memory.stat': `anon 1\ninactive_file ${100 * mib}\n`,
    'sys/fs/cgroup/system.slice/memory.max': 'max\n'
  })
  const seen = await readMachine({ directory: root, engine: engine('here'), root })
  t.match(
    seen,
    {
      cores: 4,
      memoryBytes: 8 * gib,
      availableBytes: 4 * gib,
      pressure: { cpuSome: 12.34, memoryFull: 3.5, ioFull: 7 },
      own: { limitBytes: 512 * mib, usedBytes: 200 * mib }
    },
    'a service has a limit of its own, which builds do not share'
  )
  t.same(
    seen.disks.map(({ what, path }) => [what, path]),
    [
      ['the disk of BUSBAR_DIR', root],
      ['the disk of the Docker Engine', '/']
    ]
  )
  t.ok(seen.disks.every(({ freeBytes }) => freeBytes > 0))
})

test("the limit of a container is the platform's own where the engine is around it, and everybody's where both are inside", async t => {
  const version2 = await tree(t, {
    'proc/meminfo': meminfo,
    'proc/self/cgroup': '0::/\n',
    'sys/fs/cgroup/memory.max': `${2 * gib}\n`,
    'sys/fs/cgroup/memory.current': `${gib}\n`
  })
  const limit = { limitBytes: 2 * gib, usedBytes: gib }
  t.match(await readMachine({ directory: version2, engine: engine('around'), root: version2 }), {
    memoryBytes: 8 * gib,
    availableBytes: 4 * gib,
    own: limit,
    pressure: undefined
  })
  t.match(await readMachine({ directory: version2, engine: engine('here'), root: version2 }), {
    memoryBytes: 2 * gib,
    availableBytes: gib,
    own: undefined
  })

  const version1 = await tree(t, {
    'proc/meminfo': meminfo,
    'proc/self/cgroup': '12:cpu,cpuacct:/docker/abc\n9:memory:/docker/abc\n0::/\n',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': `${2 * gib}\n`,
    'sys/fs/cgroup/memory/memory.usage_in_bytes': `${1.5 * gib}\n`,
    'sys/fs/cgroup/memory/memory.stat': `cache 1\ntotal_inactive_file ${0.5 * gib}\n`
  })
  t.match(await readMachine({ directory: version1, engine: engine('around'), root: version1 }), {
    memoryBytes: 8 * gib,
    own: limit
  })
  const unlimited = await tree(t, {
    'proc/meminfo': meminfo,
    'proc/self/cgroup': '9:memory:/\n',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n'
  })
  t.match(await readMachine({ directory: unlimited, engine: engine('here'), root: unlimited }), {
    memoryBytes: 8 * gib,
    availableBytes: 4 * gib,
    own: undefined
  })
})

test('of an engine elsewhere only its own words are known, and without any file something sensible is assumed', async t => {
  const root = await tree(t, { 'proc/meminfo': meminfo, 'proc/pressure/cpu': 'some avg10=99.00\n' })
  const far = await readMachine({
    directory: root,
    engine: { ...engine('elsewhere'), cores: 32, memoryBytes: 64 * gib },
    root
  })
  t.match(far, { cores: 32, memoryBytes: 64 * gib, availableBytes: undefined, pressure: undefined })
  t.same(
    far.disks.map(({ what }) => what),
    ['the disk of BUSBAR_DIR']
  )
  const bare = await tree(t, {})
  const guessed = await readMachine({ directory: bare, engine: undefined, root: bare })
  t.ok(guessed.cores >= 1 && guessed.memoryBytes > 0 && (guessed.availableBytes ?? 0) > 0)
  t.equal(decide({ machine: guessed, running: [], settings, waitedMs: 0 }).kind, 'admit')
})

test('a disk has as much left as its inodes take, where those end first', t => {
  const disk = { blocks: 1000, bavail: 500, bsize: 4096, files: 250, ffree: 200 }
  t.same(freeOf(disk), { freeBytes: 500 * 4096, bytesPerInode: 4 * 4096, freeInodes: disk.ffree })
  t.same(freeOf({ ...disk, ffree: 10 }), {
    freeBytes: 10 * 4 * 4096,
    bytesPerInode: 4 * 4096,
    freeInodes: 10
  })
  t.same(freeOf({ ...disk, files: 0, ffree: 0 }), { freeBytes: 500 * 4096 }, 'as on btrfs')
  t.end()
})

/** An admission over a real folder, with an engine that does not answer. */
const admissionIn = async (
  t: Test,
  changes: Partial<BuildSettings> = {},
  remove: () => Promise<boolean> = async () => true
): Promise<Admission> => {
  const directory = await folder(t)
  return new Admission({
    runtime: {
      info: async () => {
        throw new Error('away')
      }
    },
    instance: { directory: async () => directory },
    clock,
    settings: { ...settings, ...changes },
    room: new RoomMaker({ remove, clock })
  })
}

test('nothing is pulled or built onto a disk that is short, and what is prepared has limits', async t => {
  const seen: ImageRequest[] = []
  const preparation: ImagePreparation = {
    async prepare(request) {
      seen.push(request)
      return {
        reference: 'x',
        name: 'x',
        image: { id: 'x', repoDigests: [], exposedPorts: [], sizeBytes: 1 }
      }
    }
  }
  // What the request holds besides is not looked at here.
  const request = { source: { type: 'image', image: 'busybox:lab' } } as ImageRequest
  const context = { ...recorder(), onCommit: () => {} }
  const unwatched = {
    diskWatch: {
      during: async <T>(
        _user: object,
        signal: AbortSignal,
        run: (signal: AbortSignal, onCheckoutSize: () => void) => Promise<T>
      ) => await run(signal, () => {})
    },
    cachePruner: { afterFailure: async () => {} },
    claims: {
      during: async <T>(_preparation: object, run: (ownerId: string) => Promise<T>) => await run('owner'),
      othersAreUnderWay: async () => false
    },
    workspaces: { isRemoving: false }
  }
  const short = new AdmittedPreparation({
    preparation,
    ...unwatched,
    admission: await admissionIn(t, { disk_floor_mib: 1e9 })
  })
  await t.rejects(short.prepare(request, context), {
    status: 409,
    code: 'E_BUILD_DISK_SHORT',
    message: /free on the disk of BUSBAR_DIR \(.*docker image prune/
  })
  t.same(seen, [])

  let rooms = 0
  const settled = await admissionIn(t, { disk_floor_mib: 1e9 }, async () => {
    rooms++
    throw new Error('the engine is away')
  })
  for (let asked = 0; asked < 3; asked++)
    await t.rejects(
      settled.requireDisk(context.signal, async () => false),
      { code: 'E_BUILD_DISK_SHORT' }
    )
  t.equal(rooms, 3, 'room is made before anybody is refused')
  const nothing = { running: [], waiting: [], lastAdmitted: new Map() }
  await settled.decide(nothing)
  t.equal(rooms, 3, 'and not where nobody waits')

  const roomy = new AdmittedPreparation({
    preparation,
    ...unwatched,
    admission: await admissionIn(t, { disk_floor_mib: 0, memory_mib: 700, cpus: 0.5 })
  })
  await roomy.prepare(request, context)
  await roomy.prepare({ ...request, limits: { memoryBytes: 1, cpus: 1 } }, context)
  t.same(
    seen.map(({ limits }) => limits),
    [
      { memoryBytes: 700 * mib, cpus: 0.5 },
      { memoryBytes: 1, cpus: 1 }
    ]
  )
})
