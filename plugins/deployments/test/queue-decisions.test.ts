import type { AdmissionVerdict } from 'busbar/api/builds'
import { Problem } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { BuildDeferred, BuildQueue } from '../queue/build-queue.js'
import { maxPerOwner, OwnerTurns, reasonOfOwner } from '../queue/owner-turns.js'
import { readFilter } from '../records/deployment-filter.js'
import { Cancelled } from '../rollout/deploy-failure.js'

const log = { debug() {}, warn() {} } as never
const db = { transaction: async (work: (tx: object) => Promise<unknown>) => await work({}) } as never
const limits = { memoryBytes: 1, cpus: 1 }
const admit: AdmissionVerdict = { kind: 'admit', limits, note: null }
const wait = (cause: 'disk' | 'memory', reason: string): AdmissionVerdict => ({ kind: 'wait', cause, reason })

interface Waiting {
  readonly id: string
  readonly has_room?: boolean
  readonly waiting_for?: string | null
  readonly waiting_cause?: string | null
  readonly seen_at?: Date | null
}

/** A queue in which these wait; `done` is what it does with them. */
function queueOf({
  waiting,
  verdicts = {},
  granted,
  isEntered = true
}: {
  readonly waiting: readonly Waiting[]
  readonly verdicts?: Readonly<Record<string, AdmissionVerdict>>
  readonly granted?: object
  readonly isEntered?: boolean
}) {
  const clock = testClock()
  const done: string[] = []
  const lines: string[] = []
  const asked: string[][] = []
  const queue = new BuildQueue({
    db,
    clock,
    log,
    queue: {
      lock: async () => {},
      hasWaiting: async () => waiting.length > 0,
      enter: async () => (isEntered ? (granted ?? null) : undefined),
      waiting: async () =>
        waiting.map(one => ({
          application_id: `application of ${one.id}`,
          project_id: 'p',
          owner_id: 'o',
          queued_at: clock.now(),
          has_room: true,
          waiting_for: null,
          waiting_cause: null,
          seen_at: null,
          ...one
        })),
      running: async () => [],
      lastAdmitted: async () => ({}),
      admit: async (id: string) => void done.push(`admit ${id}`),
      note: async (id: string, reason: string) => void done.push(`note ${id} ${reason}`),
      noteReported: async (id: string, cause: string) => void done.push(`reported ${id} ${cause}`)
    } as never,
    records: { enqueue: async (id: string) => void done.push(`job ${id}`) } as never,
    admission: {
      decide: async ({ waiting: them }: { waiting: ReadonlyArray<{ id: string }> }) => {
        asked.push(them.map(({ id }) => id))
        return new Map(Object.entries(verdicts))
      }
    } as never
  })
  const enter = async (row: { queuedMs?: number | null; told?: string | null } = {}): Promise<unknown> =>
    await queue.enter(
      {
        id: 'a',
        queued_at: row.queuedMs == null ? null : new Date(clock.now().getTime() - row.queuedMs),
        waiting_cause: row.told ?? null
      } as never,
      { line: ({ level, msg }: { level: string; msg: string }) => lines.push(`${level} ${msg}`) } as never
    )
  return { clock, queue, done, lines, asked, enter }
}

test('a build that may begin says how long it has waited, where it was said to wait', async t => {
  for (const [row, line] of [
    [{ queuedMs: 1600, told: 'disk' }, 'info The build begins after a wait of 2 s.'],
    [{ queuedMs: 119_499, told: 'disk' }, 'info The build begins after a wait of 119 s.'],
    [{ queuedMs: 120_000, told: 'disk' }, 'info The build begins after a wait of 2 min.'],
    [{ queuedMs: 5000 }, undefined],
    [{ told: 'disk' }, undefined]
  ] as const) {
    const { enter, lines, done } = queueOf({ waiting: [{ id: 'a' }], verdicts: { a: admit } })
    t.same(await enter(row), limits)
    t.same(lines, line === undefined ? [] : [line])
    t.same(done, ['admit a'], 'its job is the one that enters')
  }
  const noted = queueOf({
    waiting: [{ id: 'a' }],
    verdicts: { a: { ...admit, note: 'Only little is free' } }
  })
  await noted.enter()
  t.same(noted.lines, ['warning Only little is free.'])
})

test('a build that was admitted before is not decided about again, and a cancelled one not at all', async t => {
  const before = queueOf({ waiting: [{ id: 'a' }], granted: limits })
  t.equal(await before.enter(), limits)
  t.same(before.asked, [])
  const cancelled = queueOf({ waiting: [{ id: 'a' }], isEntered: false, granted: limits })
  await t.rejects(cancelled.enter(), new Cancelled())
  await t.rejects(queueOf({ waiting: [{ id: 'b' }] }).enter(), {
    message: 'the admission has no verdict on a'
  })
})

test('a build that has to wait says why once, and one that would wait for ever is refused', async t => {
  const verdicts = { a: wait('disk', 'waiting for room') }
  const first = queueOf({ waiting: [{ id: 'a' }], verdicts })
  await t.rejects(first.enter(), new BuildDeferred('waiting for room'))
  t.same(first.lines, ['info The build is waiting for room.'])
  t.same(first.done, ['note a waiting for room', 'reported a disk'])
  const again = queueOf({ waiting: [{ id: 'a', waiting_for: 'waiting for room' }], verdicts })
  const error = await again.enter({ told: 'disk' }).catch((caught: unknown) => caught)
  t.ok(error instanceof BuildDeferred)
  t.same(again.lines, [])
  t.same(again.done, [])
  const problem = new Problem(507, 'E_DISK', 'the disk is full')
  const refused = queueOf({ waiting: [{ id: 'a' }], verdicts: { a: { kind: 'refuse', problem } } })
  await t.rejects(refused.enter(), { code: 'E_DISK' })
})

test('one whose owner has as many as may be is not asked about, and waits for that', async t => {
  const { queue, done, asked } = queueOf({
    waiting: [{ id: 'a', has_room: false }, { id: 'b' }],
    verdicts: { b: admit }
  })
  await queue.look()
  t.same(asked, [['b']])
  t.same(done, [`note a ${reasonOfOwner}`, 'admit b', 'job b'])
  const empty = queueOf({ waiting: [] })
  await empty.queue.look()
  t.same(empty.asked, [])
})

test('a new cause of a wait is told by a job, and not sooner than 15 seconds after the last', async t => {
  const now = testClock().now().getTime()
  const jobs = async (told: string | null, seenMs: number | null): Promise<number> => {
    const { queue, done } = queueOf({
      waiting: [
        {
          id: 'a',
          waiting_for: 'r',
          waiting_cause: told,
          seen_at: seenMs === null ? null : new Date(now - seenMs)
        }
      ],
      verdicts: { a: wait('memory', 'r') }
    })
    await queue.look()
    return done.filter(line => line === 'job a').length
  }
  t.equal(await jobs('disk', 15_001), 1)
  t.equal(await jobs('disk', 15_000), 0)
  t.equal(await jobs('disk', null), 1, 'nothing was told yet')
  t.equal(await jobs('memory', 60_000), 0, 'it is the same')
  t.equal(await jobs(null, 60_000), 0, 'its own job tells the first')
})

test('a deployment gets its turn while its owner has fewer than the most before it', async t => {
  const take = async (before: number, hasTurn = false): Promise<readonly [boolean, readonly string[]]> => {
    const done: string[] = []
    const turns = new OwnerTurns({
      db,
      clock: testClock(),
      log,
      records: {} as never,
      turns: {
        lock: async () => {},
        standing: async () => ({ has_turn: hasTurn, before }),
        note: async (_: string, reason: string) => void done.push(reason),
        give: async () => void done.push('given')
      } as never
    })
    return [await turns.take('a'), done]
  }
  t.same(await take(maxPerOwner - 1), [true, ['given']])
  t.same(await take(maxPerOwner), [false, [reasonOfOwner]])
  t.same(await take(maxPerOwner + 1, true), [true, []], 'it has its turn')
})

test('a filter takes ids, times with their zone and literal text, and an empty value is none', async t => {
  const id = '0123abcd-0000-4000-8000-000000000000'
  t.same(
    Object.values(
      readFilter({ project_id: '', application_id: '', status: '', search: '', from: '', to: '' })
    ),
    Array.from({ length: 6 }, () => undefined)
  )
  t.match(readFilter({ project_id: id, application_id: id, status: 'failed', search: '50%_\\' }), {
    projectId: id,
    applicationId: id,
    status: 'failed',
    pattern: '%50\\%\\_\\\\%'
  })
  t.equal(readFilter({ search: 'a\0' }).pattern, '%a\u{fffd}%')
  for (const time of ['2026-01-01T02:00:00+02:00', '2026-01-01T02:00:00 02:00', '2026-01-01 00:00Z'])
    t.same(readFilter({ from: time }).from, new Date('2026-01-01T00:00:00Z'), time)
  for (const time of ['2026-01-01', 'soon', '2026-01-01T00:00:00', '2026-02-30T00:00:00Z'])
    t.throws(() => readFilter({ to: time }), { code: 'E_DEPLOYMENT_FILTER' }, time)
  t.throws(() => readFilter({ project_id: 'x' }), { code: 'E_DEPLOYMENT_FILTER' })
})
