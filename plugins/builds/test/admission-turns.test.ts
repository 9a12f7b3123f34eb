import { test } from 'tap'
import type { Machine } from '../admission/admission-decision.js'
import { decideQueue } from '../admission/admission-turns.js'
import type { BuildQueue, RunningBuild, WaitingBuild } from '../api.js'
import type { BuildSettings } from '../settings.js'

const gib = 2 ** 30

const settings: BuildSettings = { checkout_mib: 2048, disk_floor_mib: 1024, wait_minutes: 60 }
/** With room for four builds. */
const machine = (changes: Partial<Machine> = {}): Machine => ({
  cores: 8,
  memoryBytes: 16 * gib,
  availableBytes: 12 * gib,
  own: undefined,
  disks: [
    { what: 'the disk of the Docker Engine', path: '/var/lib/docker', freeBytes: 50 * gib, isEngines: true }
  ],
  pressure: { cpuSome: 0, memoryFull: 0, ioFull: 0 },
  ...changes
})

const now = new Date('2026-01-01T12:00:00Z')
const before = (seconds: number): Date => new Date(now.getTime() - seconds * 1000)
const waiting = (id: string, seconds: number): WaitingBuild => ({
  id,
  projectId: id.slice(0, 1),
  since: before(seconds)
})

/** `a1:admit b1:wait …` in the order in which they are to begin. */
function outcome(queue: Partial<BuildQueue>, changes: Partial<BuildSettings> = {}): string {
  const verdicts = decideQueue(
    { waiting: [], running: [], lastAdmitted: new Map(), ...queue },
    { machine: machine(), settings: { ...settings, ...changes }, now }
  )
  return [...verdicts].map(([id, { kind }]) => `${id}:${kind}`).join(' ')
}

test('builds begin in the order of their coming, and projects take turns', async t => {
  t.equal(
    outcome({ waiting: [waiting('a1', 30), waiting('a2', 20), waiting('a3', 10)] }, { concurrent: 1 }),
    'a1:admit a2:wait a3:wait'
  )
  const crowd = [
    waiting('a1', 50),
    waiting('a2', 40),
    waiting('a3', 30),
    waiting('b1', 20),
    waiting('c1', 10)
  ]
  t.equal(
    outcome({ waiting: crowd }, { concurrent: 1 }),
    'a1:admit b1:wait c1:wait a2:wait a3:wait',
    'five of one project do not keep the others waiting'
  )
  t.equal(
    outcome({ waiting: crowd, lastAdmitted: new Map([['a', before(5)]]) }, { concurrent: 1 }),
    'b1:admit c1:wait a1:wait a2:wait a3:wait'
  )
  t.equal(
    outcome(
      {
        waiting: crowd,
        lastAdmitted: new Map([
          ['a', before(9)],
          ['b', before(5)]
        ])
      },
      { concurrent: 1 }
    ),
    'c1:admit a1:wait b1:wait a2:wait a3:wait',
    'whose last turn is longest ago'
  )
  t.equal(
    outcome(
      {
        waiting: [waiting('a2', 40), waiting('b1', 1)],
        running: [{ id: 'a1', projectId: 'a', memoryBytes: gib }]
      },
      { concurrent: 2 }
    ),
    'b1:admit a2:wait',
    'who has a build under way comes last'
  )
  t.equal(outcome({ waiting: crowd }), 'a1:admit b1:admit c1:admit a2:admit a3:wait')
})

test('who makes many projects has no more turns than who has one', async t => {
  const of = (ownerId: string, build: WaitingBuild): WaitingBuild => ({ ...build, ownerId })
  const many = ['m1', 'n1', 'o1', 'p1'].map((id, index) => of('greedy', waiting(id, 60 - index)))
  const lastAdmitted = new Map([
    ['v', before(100)],
    ['victim', before(100)],
    ['greedy', before(10)]
  ])
  t.equal(
    outcome({ waiting: [...many, of('victim', waiting('v2', 1))], lastAdmitted }, { concurrent: 1 }),
    'v2:admit m1:wait n1:wait o1:wait p1:wait',
    'although none of those projects has had a turn'
  )
  t.equal(
    outcome(
      {
        waiting: [...many, of('victim', waiting('v2', 1))],
        running: [{ id: 'l1', projectId: 'l', ownerId: 'greedy', memoryBytes: gib }]
      },
      { concurrent: 2 }
    ).split(' ')[0],
    'v2:admit',
    'who has a build under way in another project comes last'
  )
})

test('a build that begins counts as a turn at once, and those that wait are listed as they would take theirs', async t => {
  const x1: RunningBuild = { id: 'x1', projectId: 'x', memoryBytes: gib }
  const [b0, c0] = ['b', 'c'].map(id => ({ id: `${id}0`, projectId: id, memoryBytes: gib }))
  t.equal(
    outcome(
      { waiting: [waiting('a1', 30), waiting('a2', 20), waiting('b1', 10)], running: [b0 ?? x1] },
      { concurrent: 3 }
    ),
    'a1:admit b1:admit a2:wait',
    'each has one build under way, and a has just had a turn'
  )
  t.equal(
    outcome(
      { waiting: ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((id, at) => waiting(id, 60 - at)), running: [x1] },
      { concurrent: 1 }
    ),
    'a1:wait b1:wait c1:wait a2:wait b2:wait a3:wait'
  )
  t.equal(
    outcome(
      {
        waiting: [waiting('c2', 30), waiting('b1', 10)],
        running: [b0, c0].flatMap(build => build ?? []),
        lastAdmitted: new Map([
          ['b', before(9)],
          ['c', before(1)]
        ])
      },
      { concurrent: 3 }
    ),
    'b1:admit c2:wait',
    'of as many builds under way, the last turn counts before the order of coming'
  )
})

test('projects of one owner take turns, and of builds that came at once the order is the same each time', async t => {
  const of = (build: WaitingBuild): WaitingBuild => ({ ...build, ownerId: 'owner' })
  const two = [of(waiting('m1', 30)), of(waiting('n1', 10))]
  const admittedFirst = (queue: Partial<BuildQueue>): string | undefined =>
    outcome({ waiting: two, ...queue }, { concurrent: 2 }).split(' ')[0]
  t.equal(admittedFirst({}), 'm1:admit')
  t.equal(
    admittedFirst({ running: [{ id: 'm0', projectId: 'm', ownerId: 'owner', memoryBytes: gib }] }),
    'n1:admit',
    'who has a build under way comes last'
  )
  t.equal(admittedFirst({ lastAdmitted: new Map([['m', before(5)]]) }), 'n1:admit', 'who had a turn')
  t.equal(
    outcome(
      { waiting: [of(waiting('m1', 30)), of(waiting('m2', 20)), of(waiting('n1', 10))] },
      { concurrent: 1 }
    ),
    'm1:admit n1:wait m2:wait'
  )
  for (const ids of [
    ['a1', 'a2'],
    ['a2', 'a1']
  ])
    t.equal(
      outcome({ waiting: ids.map(id => waiting(id, 5)) }, { concurrent: 1 }),
      'a1:admit a2:wait',
      ids.join()
    )
})

test('a build is given up when its time to wait is over, and not one that may begin then', async t => {
  const wait = { wait_minutes: 1, concurrent: 1 }
  const x1: RunningBuild = { id: 'x1', projectId: 'x', memoryBytes: gib }
  t.equal(outcome({ waiting: [waiting('a1', 59.999)], running: [x1] }, wait), 'a1:wait')
  t.equal(outcome({ waiting: [waiting('a1', 60)], running: [x1] }, wait), 'a1:refuse')
  t.equal(outcome({ waiting: [waiting('a1', 60)] }, wait), 'a1:admit')
})

test('who waits for a turn is told how many are before it, and of a disk that is short each is told alike', async t => {
  const queue = {
    waiting: [waiting('a1', 40), waiting('b1', 30), waiting('c1', 20), waiting('d1', 10)],
    running: [{ id: 'x1', projectId: 'x', memoryBytes: gib }],
    lastAdmitted: new Map()
  }
  const verdicts = decideQueue(queue, { machine: machine(), settings: { ...settings, concurrent: 2 }, now })
  t.match(verdicts.get('a1'), { kind: 'admit' })
  t.match(verdicts.get('b1'), { kind: 'wait', cause: 'builds' })
  t.match(verdicts.get('c1'), {
    reason: 'waiting for its turn: 2 builds are running, and 1 waits before it'
  })
  t.match(verdicts.get('d1'), {
    reason: 'waiting for its turn: 2 builds are running, and 2 wait before it'
  })
  const full = machine({
    disks: [{ what: 'the disk of the Docker Engine', path: '/', freeBytes: 1, isEngines: true }]
  })
  const refused = decideQueue({ ...queue, running: [] }, { machine: full, settings, now })
  t.same(
    [...refused.values()].map(({ kind }) => kind),
    ['refuse', 'refuse', 'refuse', 'refuse']
  )
})

test('each that waits is told why, and given up when it has waited for too long', async t => {
  const queue: BuildQueue = {
    waiting: [waiting('a1', 10), waiting('b1', 5), waiting('c1', 61 * 60)],
    running: [{ id: 'x1', projectId: 'x', memoryBytes: gib }],
    lastAdmitted: new Map([['c', before(1)]])
  }
  const verdicts = decideQueue(queue, { machine: machine(), settings: { ...settings, concurrent: 1 }, now })
  t.match(verdicts.get('a1'), { kind: 'wait', cause: 'builds' })
  t.match(verdicts.get('b1'), {
    kind: 'wait',
    cause: 'turn',
    reason: 'waiting for its turn: 1 build is running, and 1 waits before it'
  })
  t.match(verdicts.get('c1'), {
    kind: 'refuse',
    problem: {
      code: 'E_BUILD_WAIT',
      message:
        'the build was stopped after 60 minutes of waiting for its turn: 1 build is running, and 2 wait before it; cancel builds that are not needed, or raise the setting concurrent of the builds plugin'
    }
  })
})
