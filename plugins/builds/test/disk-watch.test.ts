import { once } from 'node:events'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { createLog } from '../../../core/log/log.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { DiskWatch } from '../disk/disk-watch.js'
import { RoomMaker } from '../disk/room-maker.js'

const mebi = 2 ** 20
const clock = systemClock()
const floorBytes = 200 * mebi

class Failure extends Error {}

/** A disk of 1000 MiB, and what is built and pulled meanwhile. */
function startWatch(
  remove: (disk: { freeBytes: number }) => unknown = () => {},
  { countMs = 0, onWarning = () => {} }: { readonly countMs?: number; readonly onWarning?: () => void } = {}
) {
  const disk = { freeBytes: 1000 * mebi }
  const usage = new Map<string, { bytes: number; runningStepBytes: number; isPartial: boolean }>()
  const files = new Map<string, { bytes: number; inodes: number; heldBytes?: number }>()
  let measured = 0
  let counted = 0
  const state = { isCountable: true }
  const watch = new DiskWatch({
    buildUsage: async () => {
      measured++
      return [...usage].map(([deploymentId, known]) => ({ owner: { deploymentId }, ...known }))
    },
    buildFileUse: async () => {
      const found = [...files]
      if (!state.isCountable) {
        counted++
        throw new Error('there is no find')
      }
      if (countMs > 0) await clock.sleep(countMs)
      counted++
      return found.map(([deploymentId, use]) => ({ owner: { deploymentId }, isCut: false, ...use }))
    },
    clock,
    log: { ...createLog({ level: 'silent', format: 'json', redactor: createRedactor() }), warn: onWarning },
    limits: { floorBytes, buildBytes: 10_000 * mebi, failedBytes: 300 * mebi },
    disks: async () => [{ what: 'the disk', path: '/', freeBytes: disk.freeBytes, isEngines: true }],
    room: new RoomMaker({ clock, remove: async () => (await remove(disk)) !== false })
  })
  return {
    disk,
    state,
    wrote: (id: string, mebibytes: number, isPartial = false) =>
      usage.set(id, { bytes: mebibytes * mebi, runningStepBytes: 0, isPartial }),
    runsStep: (id: string, mebibytes: number) =>
      usage.set(id, { bytes: mebibytes * mebi, runningStepBytes: mebibytes * mebi, isPartial: true }),
    holds: (id: string, mebibytes: number) => files.set(id, { bytes: mebibytes * mebi, inodes: 1 }),
    keeps: (id: string, mebibytes: number) =>
      files.set(id, { bytes: 0, inodes: 1, heldBytes: mebibytes * mebi }),
    counted: () => counted,
    forget: (id: string) => usage.delete(id),
    untilMeasured: async () => {
      const before = measured
      await until(() => measured >= before + 2, 'what is written to be measured')
    },
    begin: (id: string, kind: 'build' | 'pull' = 'build') => {
      const done = new AbortController()
      let checkedOut = (_bytes: number): void => {}
      const ended = watch.during(
        { id, ownerId: `owner of ${id}`, kind },
        new AbortController().signal,
        async (signal, onCheckoutSize) => {
          checkedOut = onCheckoutSize
          await once(AbortSignal.any([signal, done.signal]), 'abort')
          if (done.signal.reason instanceof Failure) throw done.signal.reason
          return signal.reason as Error | undefined
        }
      )
      return {
        ended,
        finish: () => done.abort(),
        fail: () => done.abort(new Failure('exit code 1')),
        checkedOut: (mebibytes: number) => checkedOut(mebibytes * mebi)
      }
    }
  }
}

test('what a cancelled build gives back late is not put down to the next one', async t => {
  const { disk, wrote, forget, begin } = startWatch()
  const hog = begin('hog')
  const quiet = begin('quiet')
  wrote('hog', 700)
  wrote('quiet', 40)
  disk.freeBytes = 150 * mebi
  t.match(await hog.ended, { code: 'E_BUILD_DISK_SHORT' })
  forget('hog')
  let isDone = false
  void quiet.ended.then(() => {
    isDone = true
  })
  const looks = performance.now() + 1000
  while (performance.now() < looks && !isDone) await clock.sleep(20)
  t.notOk(isDone, 'the other one goes on while the room comes back')
  disk.freeBytes = 90 * mebi
  t.match(await quiet.ended, { code: 'E_BUILD_DISK_SHORT' }, 'but not below half of the floor')
})

test('what was built and pulled in the meantime is not put down to a step that runs on', async t => {
  const { disk, wrote, forget, untilMeasured, begin } = startWatch()
  const step = begin('step')
  const large = begin('large')
  wrote('step', 50, true)
  wrote('large', 200)
  for (const kind of ['build', 'pull'] as const) {
    const other = begin(kind, kind)
    wrote(kind, 250)
    disk.freeBytes -= 250 * mebi
    await untilMeasured()
    other.finish()
    t.equal(await other.ended, undefined)
    forget(kind)
  }
  disk.freeBytes = 150 * mebi
  t.match(await large.ended, { code: 'E_BUILD_DISK_SHORT' }, 'but the one that has taken more ends')
  step.finish()
  t.equal(await step.ended, undefined)
})

test('files are counted while the disk is nearly short, and the build ends that holds them', async t => {
  const { disk, wrote, holds, counted, untilMeasured, begin } = startWatch()
  const hides = begin('hides')
  const small = begin('small')
  wrote('hides', 60, true)
  wrote('small', 50, true)
  await untilMeasured()
  t.equal(counted(), 0, 'not while there is room: it takes long')
  holds('hides', 700)
  holds('small', 50)
  disk.freeBytes = 250 * mebi
  await until(() => counted() > 0, 'files to be counted above the floor')
  disk.freeBytes = 150 * mebi
  t.match(await hides.ended, { code: 'E_BUILD_DISK_SHORT' })
  small.finish()
  t.equal(await small.ended, undefined)
})

test('what is hidden after files were counted is found before anybody ends', async t => {
  const { disk, wrote, holds, counted, begin } = startWatch(() => {}, { countMs: 600 })
  const hides = begin('hides')
  const small = begin('small')
  wrote('hides', 20, true)
  wrote('small', 50, true)
  holds('hides', 20)
  holds('small', 50)
  disk.freeBytes = 250 * mebi
  await until(() => counted() > 0, 'files to be counted above the floor')
  holds('hides', 120)
  disk.freeBytes = 150 * mebi
  t.match(await hides.ended, { code: 'E_BUILD_DISK_SHORT' })
  small.finish()
  t.equal(await small.ended, undefined)
})

test('a file without a name in a step does not end a pull', async t => {
  const { disk, wrote, begin } = startWatch()
  const step = begin('step')
  const pull = begin('pull', 'pull')
  wrote('step', 0, true)
  wrote('pull', 1)
  disk.freeBytes = 150 * mebi
  t.match(await step.ended, { code: 'E_BUILD_DISK_SHORT' })
  pull.finish()
  t.equal(await pull.ended, undefined)
})

test('a build ends while its step runs, where there is no room for the copy of it', async t => {
  const { disk, runsStep, begin } = startWatch()
  const large = begin('large')
  disk.freeBytes = 600 * mebi
  runsStep('large', 450)
  t.match(await large.ended, {
    code: 'E_BUILD_DISK_SHORT',
    message: /only 600 MiB were left .* another 450 MiB/
  })
})

test('what failed builds have left is not put down to a step that runs on', async t => {
  const { disk, wrote, forget, untilMeasured, begin } = startWatch()
  const step = begin('step')
  await untilMeasured()
  wrote('step', 50, true)
  disk.freeBytes -= 50 * mebi
  await untilMeasured()
  for (const id of ['one', 'two']) {
    const failing = begin(id)
    wrote(id, 250, true)
    disk.freeBytes -= 250 * mebi
    await untilMeasured()
    failing.fail()
    await t.rejects(failing.ended, { message: 'exit code 1' })
    forget(id)
  }
  const last = begin('last')
  wrote('last', 300, true)
  disk.freeBytes -= 300 * mebi
  t.match(await last.ended, { code: 'E_BUILD_DISK_SHORT' })
  step.finish()
  t.equal(await step.ended, undefined)
})

test('a large checkout counts as what its build has taken', async t => {
  const { disk, wrote, begin } = startWatch()
  const cloning = begin('cloning')
  const step = begin('step')
  wrote('step', 200, true)
  await clock.sleep(50)
  cloning.checkedOut(600)
  disk.freeBytes = 150 * mebi
  t.match(await cloning.ended, { code: 'E_BUILD_DISK_SHORT' })
  step.finish()
  t.equal(await step.ended, undefined)
})

test('nobody ends for what nobody needs: it is removed first', async t => {
  let removed = 0
  const { disk, wrote, untilMeasured, begin } = startWatch(room => {
    removed++
    room.freeBytes += 100 * mebi
  })
  const build = begin('build')
  wrote('build', 40)
  disk.freeBytes = 150 * mebi
  await until(() => removed > 0, 'room to be made')
  await untilMeasured()
  build.finish()
  t.equal(await build.ended, undefined)
  t.equal(removed, 1)
})

test('no build ends while unused data is being removed, but below half of the floor', async t => {
  let isRemoved = (): void => {}
  let rounds = 0
  const { disk, wrote, untilMeasured, begin } = startWatch(async room => {
    if (rounds++ > 0) return
    await new Promise<void>(resolve => {
      isRemoved = resolve
    })
    room.freeBytes += 500 * mebi
  })
  const large = begin('large')
  wrote('large', 400)
  disk.freeBytes = 290 * mebi
  await until(() => rounds === 1, 'room to be made before the floor is reached')
  disk.freeBytes = 110 * mebi
  await untilMeasured()
  let hasEnded = false
  void large.ended.then(() => {
    hasEnded = true
  })
  t.equal(hasEnded, false)
  isRemoved()
  await until(() => disk.freeBytes > 600 * mebi, 'the room')
  await untilMeasured()
  t.equal(hasEnded, false)
  large.finish()
  t.equal(await large.ended, undefined)

  const stuck = startWatch(async () => await new Promise(() => {}))
  const build = stuck.begin('build')
  stuck.wrote('build', 400)
  stuck.disk.freeBytes = 90 * mebi
  t.match(await build.ended, { code: 'E_BUILD_DISK_SHORT' })
})

test('where files cannot be counted the log says so once, and again when that has worked meanwhile', async t => {
  let warnings = 0
  const { disk, state, wrote, counted, begin } = startWatch(() => {}, { onWarning: () => warnings++ })
  state.isCountable = false
  const builds = [begin('one'), begin('other')]
  wrote('one', 60, true)
  wrote('other', 50, true)
  disk.freeBytes = 250 * mebi
  const untilCounted = async (): Promise<void> => {
    const before = counted()
    await until(() => counted() >= before + 2, 'files to be counted')
  }
  await untilCounted()
  t.equal(warnings, 1)
  state.isCountable = true
  await untilCounted()
  t.equal(warnings, 1)
  state.isCountable = false
  await untilCounted()
  t.equal(warnings, 2)
  for (const build of builds) {
    build.finish()
    t.equal(await build.ended, undefined)
  }
})

test('a build that sleeps while its engine keeps most of the disk ends before one that writes', async t => {
  const { disk, wrote, keeps, untilMeasured, begin } = startWatch()
  const sleeps = begin('sleeps')
  const writes = begin('writes')
  wrote('sleeps', 0)
  wrote('writes', 210)
  keeps('sleeps', 500)
  keeps('writes', 210)
  await untilMeasured()
  disk.freeBytes = 150 * mebi
  t.match(await sleeps.ended, { code: 'E_BUILD_DISK_SHORT' })
  writes.finish()
  t.equal(await writes.ended, undefined)
})
