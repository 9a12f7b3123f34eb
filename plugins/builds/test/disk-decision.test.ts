import { test } from 'tap'
import type { Disk } from '../admission/admission-decision.js'
import {
  afterCopies,
  type DiskUser,
  decideDisk,
  isCertain,
  leftBy,
  nextLookMs,
  noFiles
} from '../disk/disk-decision.js'

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
  ownerId: `owner of ${id}`,
  kind: id === 'pull' ? 'pull' : 'build',
  writtenBytes,
  runningStepBytes: 0,
  workspaceBytes: 0,
  begunAt: 0,
  isPartial: writtenBytes === undefined,
  files: noFiles,
  isCounted: false,
  isUncountable: false,
  isEnding: false,
  freeAtBegin: atBegin,
  freeAtSuspicion: changes.freeAtBegin ?? atBegin,
  ...changes
})
const ended = (users: readonly DiskUser[], ...disks: Disk[]): string | undefined =>
  decideDisk(users, disks, limits)?.id

/** A build of which it is not known whether it has written more. */
const step = (id: string, writtenBytes: number, changes: Partial<DiskUser> = {}): DiskUser =>
  user(id, writtenBytes, { isPartial: true, ...changes })

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
    ended([user('a', 2 * gib), user('b', mib, { isEnding: true })], disk(gib / 2 - 1)),
    'a',
    'unless that is not enough, and comes too late'
  )
  t.equal(
    ended([user('a', 2 * gib), user('b', 17 * gib, { isEnding: true })], disk(0)),
    undefined,
    'nobody follows one who has taken all that is missing'
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
    ended([step('b', 200 * mib, { isCounted: true }), pull(150 * mib, { isPartial: true })], disk(mib)),
    'pull',
    'but where all went while it was unpacked: a layer may be packed a thousandfold'
  )
  t.equal(
    ended(
      [step('b', 0, { begunAt: 2, isCounted: true }), pull(150 * mib, { isPartial: true, begunAt: 1 })],
      disk(mib)
    ),
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
    'a',
    'of builds whose files cannot be counted, the one that is known to have written most'
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

test('a build that hides what it has written has that counted, and no other one ends for it', t => {
  const counted = (
    id: string,
    named: number,
    files: Partial<DiskUser['files']>,
    changes: Partial<DiskUser> = {}
  ) => user(id, named, { isPartial: true, isCounted: true, files: { ...noFiles, ...files }, ...changes })
  const small = counted('small', 50 * mib, { bytes: 50 * mib, inodes: 9000 })

  for (const named of [0, 10 * mib, 300 * mib])
    for (const users of [
      [counted('hides', named, { bytes: 15 * gib }), small],
      [small, counted('hides', named, { bytes: 15 * gib }, { begunAt: 5 })]
    ])
      t.equal(ended(users, disk(mib)), 'hides', `${named / mib} MiB with a name, begun ${users[0]?.id} first`)
  t.equal(
    ended([counted('hides', 60 * mib, { bytes: 15 * gib }, { isCounted: false }), small], disk(mib)),
    'hides',
    'also where it has more files than could be counted'
  )
  t.equal(
    ended([counted('farm', 0, { inodes: 2_000_000 }), small], {
      ...disk(mib),
      bytesPerInode: 8192,
      freeInodes: 128
    }),
    'farm',
    'by inodes, where those are short'
  )
  t.equal(
    ended([counted('farm', 0, { inodes: 2_000_000 }), counted('large', gib, { bytes: gib })], disk(mib)),
    'large',
    'and by bytes, where those are'
  )
  t.equal(
    ended([counted('farm', 0, { inodes: 2_000_000 }), counted('large', gib, { bytes: gib })], {
      ...disk(mib),
      bytesPerInode: 8192,
      freeInodes: 5_000_000
    }),
    'large',
    'on a disk that has inodes enough'
  )
  const split = ['a1', 'a2', 'a3'].map(id => counted(id, 0, { bytes: 40 * mib }, { ownerId: 'a' }))
  t.match(ended([small, ...split], disk(mib)), /^a\d$/, 'work that is split into many builds is of one owner')
  t.equal(
    ended([small, ...split, counted('a4', 0, { bytes: 41 * mib }, { ownerId: 'a' })], disk(mib)),
    'a4',
    'of which the one ends that holds most'
  )
  t.equal(
    ended([counted('a', 0, { bytes: gib }), step('pull', 2 * gib, { kind: 'pull' })], disk(mib)),
    'pull',
    'what builds are shown not to have is put down to a pull that unpacks'
  )
  t.match(
    decideDisk([counted('hides', mib, { bytes: 3 * gib }), small], [disk(700 * mib)], limits)?.problem,
    { message: /it has written 3\.0 GiB on the engine, of which 3\.0 GiB/ },
    'the error says what was found'
  )
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

test('files are waited for only where they can change who ends', t => {
  const certain = (users: readonly DiskUser[], freeBytes = mib) => isCertain(users, [disk(freeBytes)], limits)
  t.equal(certain([step('a', 15 * gib), step('b', gib)]), true, 'what is missing is known to be of one')
  t.equal(certain([step('a', 200 * mib), step('b', 100 * mib)]), false)
  t.equal(certain([user('a', 200 * mib), user('b', 100 * mib)]), true, 'none hides anything')
  t.equal(certain([step('a', 200 * mib)]), true)
  t.equal(certain([]), true)
  t.equal(
    certain([step('a', 200 * mib), step('b', 100 * mib)], 5 * gib),
    true,
    'and nothing while there is room'
  )
  t.equal(
    certain([
      step('a', 9 * gib, { ownerId: 'x' }),
      step('b', 0, { ownerId: 'x' }),
      step('c', 0, { isCounted: true })
    ]),
    false,
    'of one owner it matters as well'
  )
  t.end()
})

test('what a build keeps its engine from giving back counts as what it has', t => {
  const holder = user('holder', 0, { files: { ...noFiles, heldBytes: 5 * gib } })
  const writer = user('writer', gib)
  t.equal(ended([holder, writer], disk(gib - 1)), 'holder')
  t.match(
    decideDisk([holder, writer], [disk(gib - 1)], limits)?.problem.message,
    /build engine .* holds 5\.0 GiB/
  )
  t.equal(ended([holder, user('large', 6 * gib)], disk(gib - 1)), 'large')
  t.equal(ended([holder, writer], disk(gib)), undefined, 'with room nobody ends for it')
  t.equal(
    ended([holder, writer], disk(20 * gib), disk(gib - 1, '/data')),
    'writer',
    'it is on the disk of the engine'
  )
  t.end()
})

test('a build that cannot be measured ends, whatever is free', t => {
  const [farm, other] = [user('farm', 0, { isUncountable: true }), user('other', gib)]
  t.match(decideDisk([other, farm], [disk(20 * gib)], limits), {
    id: 'farm',
    problem: { code: 'E_BUILD_DISK_LIMIT', message: /many files/ }
  })
  t.end()
})
