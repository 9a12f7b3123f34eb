import { test } from 'tap'
import { behindWaits } from '../../core/database/blame.js'
import type { LockWait } from '../../core/database/lock-waits.js'
import { WaitingTime } from '../../core/database/waiting-time.js'
import { longestBusy, mostLocks } from '../../core/database/who-to-end.js'

const wait = (waiting: number, blocker: number, more: Partial<LockWait> = {}): LockWait => ({
  waiting,
  waitingName: 'busbar',
  waitingSince: 'noon',
  blocker,
  blockerName: 'busbar plugin p',
  began: 'dawn',
  lock: 'relation',
  isQueued: false,
  table: null,
  ...more
})
const guarded =
  (...pids: number[]) =>
  (pid: number) =>
    pids.includes(pid)
const pairs = (waits: readonly LockWait[]) => waits.map(({ waiting, blocker }) => [waiting, blocker])

test('who only waits for a table before others is behind that, if it is a plugin; who has it follows those it waits for', t => {
  const others = wait(2, 3, { lock: 'advisory' })
  t.same(pairs(behindWaits([wait(1, 2), others], guarded(2, 3))), [
    [1, 3],
    [2, 3]
  ])
  t.same(
    pairs(behindWaits([wait(1, 2), others], guarded(2)))[0],
    [1, 2],
    'who waits for no plugin is it itself'
  )
  const queued = wait(1, 2, { isQueued: true })
  t.same(pairs(behindWaits([queued, wait(2, 3)], guarded(2, 3)))[0], [1, 2])
  t.same(pairs(behindWaits([queued, wait(2, 3)], guarded(3)))[0], [1, 3])
  t.same(pairs(behindWaits([wait(1, 2), wait(2, 1)], guarded()))[0], [1, 2], 'those who wait for each other')
  t.end()
})

/** Looks every 100 ms at what each of `looks` has seen of the plugin `p`. */
function due(looks: ReadonlyArray<readonly LockWait[]>, limitMs = 300): string[] {
  const times = new WaitingTime<string>(200)
  return looks.flatMap((waits, n) =>
    times
      .note(
        waits.map(one => ({ wait: one, whose: 'p', limitMs })),
        n * 100
      )
      .map(({ wait: { blocker }, times: count }) => `${n}: ${blocker} ${count}`)
  )
}

test('one wait counts as long as it lasts, whichever connections of a plugin are behind it', t => {
  t.same(due(Array(8).fill([wait(1, 9)])), ['3: 9 1', '6: 9 2'], 'again after as long again')
  t.same(
    due([[wait(1, 7)], [wait(1, 8)], [wait(1, 7)], [wait(1, 8)], [wait(1, 7)], [wait(1, 9)]]),
    ['3: 8 1', '4: 7 1', '5: 9 1'],
    'beyond the limit each that comes next'
  )
  t.same(due([[wait(1, 7)], [], [wait(1, 7)], [], [wait(1, 7)]]), ['4: 7 1'], 'with nothing seen in between')
  const began = (since: string) => [wait(1, 7, { began: since })]
  t.same(
    due([...Array(4).fill(began('a')), ...Array(2).fill(began('b'))]),
    ['3: 7 1', '4: 7 1'],
    'another with its id'
  )
  t.same(due(Array(4).fill([wait(1, 7), wait(1, 8), wait(2, 7)])), ['3: 7 1', '3: 8 1'], 'several at a time')
  t.end()
})

test('waits of several transactions are not added up, and one that was over is forgotten', t => {
  const of = (waitingSince: string) => [wait(1, 7, { waitingSince })]
  t.same(due(['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c'].map(of)), [])
  t.same(due([of('a'), of('a'), of('a'), [], [], [], [], of('a'), of('a'), of('a')]), [])
  t.end()
})

test('what nobody has looked at for long counts as two looks at most', t => {
  const times = new WaitingTime<string>(200)
  const counted = [{ wait: wait(1, 7), whose: 'p', limitMs: 300 }]
  t.same(times.note(counted, 0), [])
  t.same(times.note(counted, 60_000), [])
  t.equal(times.note(counted, 60_100).length, 1)
  times.clear()
  t.same(times.note(counted, 60_200), [])
  t.end()
})

test('of who has most locks with all its connections, the one with most is it', t => {
  const counts = [
    { pid: 1, name: 'pg_dump', locks: 500 },
    { pid: 2, name: 'busbar plugin p', locks: 300 },
    { pid: 3, name: 'busbar plugin p', locks: 290 }
  ]
  const pluginOf = (pid: number) => (pid === 1 ? undefined : 'p')
  t.equal(mostLocks(counts, pluginOf)?.pid, 2)
  t.equal(mostLocks(counts.slice(0, 2), pluginOf)?.pid, 1)
  t.equal(mostLocks([], pluginOf), undefined)
  t.end()
})

test('who is at work for longest is who began first; who is at nothing does not count', t => {
  t.same(longestBusy([{ since: undefined }, { since: 5 }, { since: 3 }, { since: 4 }]), { since: 3 })
  t.equal(longestBusy([{ since: undefined }]), undefined)
  t.end()
})
