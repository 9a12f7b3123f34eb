import { test } from 'tap'
import type { Disk } from '../admission/admission-decision.js'
import { afterCopies, type DiskUser, decideDisk, leftBy, nextLookMs } from '../disk/disk-decision.js'

const mib = 2 ** 20
const gib = 2 ** 30
const limits = { floorBytes: gib, buildBytes: 10 * gib, failedBytes: gib }
const disk = (freeBytes: number, path = '/engine'): Disk => ({
  what: `the disk ${path}`,
  path,
  freeBytes,
  isEngines: path === '/engine'
})
const atBegin = new Map([
  ['/engine', 20 * gib],
  ['/data', 20 * gib]
])
const user = (id: string, writtenBytes: number | undefined, changes: Partial<DiskUser> = {}): DiskUser => ({
  id,
  kind: id === 'pull' ? 'pull' : 'build',
  writtenBytes,
  runningStepBytes: 0,
  workspaceBytes: 0,
  begunAt: 0,
  isPartial: writtenBytes === undefined,
  isEnding: false,
  freeAtBegin: atBegin,
  freeAtSuspicion: changes.freeAtBegin ?? atBegin,
  ...changes
})
const ended = (users: readonly DiskUser[], ...disks: Disk[]): string | undefined =>
  decideDisk(users, disks, limits)?.id

test('who has to end, of what is built and pulled', t => {
  t.equal(ended([user('a', gib), user('b', undefined)], disk(gib)), undefined, 'nobody while there is room')
  t.equal(
    ended([user('a', 10 * gib), user('b', 10 * gib + 1)], disk(100 * gib)),
    'b',
    'whoever passes the limit of a build, however much is free'
  )
  t.equal(
    ended([user('a', 2 * gib), user('b', 17 * gib, { isEnding: true })], disk(gib - 1)),
    undefined,
    'nobody else while one gives back what it has taken'
  )
  t.equal(
    ended([user('a', 2 * gib), user('b', 17 * gib, { isEnding: true })], disk(gib / 2 - 1)),
    'a',
    'unless that comes too late'
  )
  t.equal(
    ended([user('a', gib), user('b', 9 * gib), user('c', 0)], disk(gib - 1)),
    'b',
    'who has written most'
  )
  t.equal(
    ended([user('a', gib), user('b', 9 * gib), user('c', 0)], disk(50 * gib), disk(mib, '/data')),
    'b',
    'on whichever disk'
  )
  t.equal(
    ended([user('a', 3 * gib), user('b', mib, { isPartial: true })], disk(mib)),
    'b',
    'what nobody is known to have written counts for the one that is not measured in full'
  )
  t.equal(ended([user('a', 3 * gib), user('pull', undefined)], disk(mib)), 'pull')
  t.equal(
    ended(
      [user('a', 3 * gib), user('pull', undefined, { freeAtBegin: new Map([['/engine', gib]]) })],
      disk(mib)
    ),
    'a',
    'but only what is missing since it began'
  )
  t.equal(
    ended([user('a', 0, { begunAt: 1 }), user('b', 0, { begunAt: 2 })], disk(mib)),
    'b',
    'who came last, where nobody has written anything'
  )
  t.equal(ended([], disk(0)), undefined)
  t.match(decideDisk([user('a', 3 * gib)], [disk(700 * mib)], limits)?.problem, {
    code: 'E_BUILD_DISK_SHORT',
    message:
      /only 700 MiB were left on the disk \/engine \(\/engine\), less than 1\.0 GiB; it has written 3\.0 GiB on the engine; make it write less/
  })
  t.match(decideDisk([user('a', undefined)], [disk(700 * mib)], limits)?.problem, {
    message: /less than 1\.0 GiB; make it write less/
  })
  t.match(decideDisk([user('pull', undefined)], [disk(700 * mib)], limits)?.problem, {
    code: 'E_BUILD_DISK_SHORT',
    message: /^the pull was stopped: only 700 MiB.*smaller image/
  })
  t.match(decideDisk([user('a', 11 * gib)], [], limits)?.problem, {
    code: 'E_BUILD_DISK_LIMIT',
    message: /it has written 11\.0 GiB, and may write 10\.0 GiB.*build_disk_mib/
  })
  t.end()
})

test('what nobody is known to have written is put down to who can have written it', t => {
  const step = (id: string, writtenBytes: number, changes: Partial<DiskUser> = {}) =>
    user(id, writtenBytes, { isPartial: true, ...changes })
  const pull = (writtenBytes: number, changes: Partial<DiskUser> = {}) => user('pull', writtenBytes, changes)

  t.equal(
    ended([step('a', 0), pull(mib)], disk(mib)),
    'a',
    'a step that holds a file without a name, not a pull that has downloaded little'
  )
  t.equal(
    ended(
      [step('a', 0), pull(4 * gib, { isPartial: true, freeAtSuspicion: new Map([['/engine', 15 * gib]]) })],
      disk(mib)
    ),
    'a',
    'nor one that is unpacked, when much was missing before that'
  )
  t.equal(
    ended([step('b', 200 * mib), pull(150 * mib, { isPartial: true })], disk(mib)),
    'pull',
    'but where all went while it was unpacked: a layer may be packed a thousandfold'
  )
  t.equal(
    ended([step('b', 0, { begunAt: 2 }), pull(150 * mib, { isPartial: true, begunAt: 1 })], disk(mib)),
    'pull',
    'whoever came last'
  )
  t.equal(
    ended([step('a', mib), pull(19 * gib, { isPartial: true })], disk(mib)),
    'pull',
    'but one that came to as much'
  )
  t.equal(
    ended([step('a', 3 * gib), pull(50 * gib, { freeAtBegin: new Map([['/engine', 2 * gib]]) })], disk(mib)),
    'a',
    'of which no more counts than is missing since it began'
  )
  t.equal(
    ended([step('a', 0), user('pull', undefined)], disk(mib)),
    'a',
    'a pull of which nothing is known yet comes after builds, too'
  )
  t.equal(
    ended([user('a', 3 * gib), pull(mib, { isPartial: true })], disk(mib)),
    'pull',
    'of pulls, one that is unpacked can have written more'
  )
  t.equal(
    ended([user('a', 3 * gib), pull(mib)], disk(mib)),
    'a',
    'and where nobody can, what is known counts: a foreign program fills the disk'
  )
  t.equal(
    ended([step('a', 400 * mib, { begunAt: 1 }), step('b', 0, { begunAt: 2 })], disk(mib)),
    'b',
    'beside much that nobody is known to have written, a little that one has does not tell who it was'
  )
  t.equal(
    ended([step('a', 9 * gib, { begunAt: 1 }), step('b', 0, { begunAt: 2 })], disk(mib)),
    'a',
    'but much does'
  )
  for (const [first, second] of [
    ['hides', 'b'],
    ['b', 'hides']
  ])
    t.equal(
      ended(
        [first, second].map((id = '', begunAt) => step(id, id === 'b' ? 200 * mib : 0, { begunAt })),
        disk(mib)
      ),
      'hides',
      `nor does it who began first: ${first}`
    )
  t.equal(
    ended([step('a', 0, { workspaceBytes: 15 * gib }), step('b', 2 * gib, { begunAt: 1 })], disk(mib)),
    'a',
    'a large checkout is known'
  )
  t.equal(
    ended([step('a', 0, { workspaceBytes: 15 * gib })], disk(100 * gib)),
    undefined,
    'and not what the build has written on the engine'
  )
  t.equal(ended([pull(50 * gib)], disk(100 * gib)), undefined, 'the limit of a build is none of a pull')
  t.end()
})

test('what a step that runs has written counts twice: the engine copies it when it ends, and nothing stops that', t => {
  const step = (id: string, runningStepBytes: number, changes: Partial<DiskUser> = {}) =>
    user(id, runningStepBytes, { runningStepBytes, ...changes })

  t.equal(ended([step('a', 3 * gib)], disk(4 * gib)), undefined, 'nobody while there is room for the copy')
  t.equal(ended([step('a', 3 * gib)], disk(4 * gib - 1)), 'a', 'before the step has ended')
  t.equal(
    ended([user('a', 3 * gib)], disk(4 * gib - 1)),
    undefined,
    'what steps have written that have ended was copied'
  )
  t.equal(ended([step('a', 3 * gib)], disk(50 * gib), disk(2 * gib, '/data')), undefined, 'on another disk')
  t.equal(
    ended([step('a', 2 * gib), step('b', 3 * gib)], disk(6 * gib - 1)),
    'b',
    'of several steps all may end at once'
  )
  t.equal(
    ended([user('a', 4 * gib), step('b', 3 * gib)], disk(4 * gib - 1)),
    'b',
    'who will have taken most with the copy ends'
  )
  t.equal(
    ended([step('a', gib), step('b', 3 * gib, { isEnding: true })], disk(3 * gib)),
    undefined,
    'that of a build that was cancelled is not kept'
  )
  t.match(decideDisk([step('a', 3 * gib)], [disk(3.5 * gib)], limits)?.problem, {
    code: 'E_BUILD_DISK_SHORT',
    message:
      /only 3\.5 GiB were left on the disk \/engine \(\/engine\), and the engine needs another 3\.0 GiB to keep the steps that run, which leaves less than 1\.0 GiB; it has written 3\.0 GiB/
  })
  t.equal(
    nextLookMs(afterCopies([disk(6 * gib)], [step('a', 4 * gib)]), limits),
    250,
    'it is looked at sooner'
  )
  t.end()
})

test('what stays of a build that failed is no more than may, and no more than is missing', t => {
  const left = (writtenBytes: number, freeBytes: number, isMade = false) =>
    leftBy(user('a', writtenBytes), disk(freeBytes), { isMade, failedBytes: gib })
  t.equal(left(3 * gib, 10 * gib), gib)
  t.equal(left(3 * gib, 20 * gib - mib), mib)
  t.equal(left(900 * mib, 10 * gib), 900 * mib)
  t.equal(left(3 * gib, 10 * gib, true), 3 * gib, 'an image stays as it is')
  t.end()
})

test('the less is free, the sooner the disk is looked at again: a writer of 2 GiB a second does not fill it in between', t => {
  t.equal(nextLookMs([disk(100 * gib)], limits), 1000)
  t.equal(nextLookMs([disk(100 * gib), disk(2 * gib, '/data')], limits), 250)
  t.equal(nextLookMs([disk(gib)], limits), 50)
  t.equal(nextLookMs([disk(0)], limits), 50)
  t.equal(nextLookMs([], limits), 1000)
  let free = 9 * gib
  while (free > gib) free -= (nextLookMs([disk(free)], limits) / 1000) * 2 * gib
  t.ok(free > gib * 0.85, `${free / mib} MiB are left when it is seen`)
  t.end()
})
