import { type EngineDisk, whileThereIsRoom, withFullDisk } from 'busbar/api/builds'
import { Problem } from 'busbar/sdk'
import { test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'

const mebi = 2 ** 20
const clock = systemClock()

const readerOf = (read: () => Promise<EngineDisk | undefined>) => ({
  read,
  makeRoom: async () => {},
  caches: async () => []
})

/** What work that fails so leaves of its error, with so much free on the disk; undefined: it is not seen. */
async function failed(error: unknown, freeMebi: number | undefined): Promise<unknown> {
  const disk = readerOf(async () =>
    freeMebi === undefined ? undefined : { freeBytes: freeMebi * mebi, floorBytes: 0 }
  )
  const parts = { clock, disk: { get: () => disk } }
  return await whileThereIsRoom(parts as never, new AbortController().signal, async () => {
    throw error
  }).catch((thrown: unknown) => thrown)
}

test('what fails on a full disk says so, and what helps, before what failed', async t => {
  const ended = new Error('its server ends')
  t.match(await failed(ended, 3), {
    message:
      'the disk of the engine is full, but for 3 MiB: make room on it, and try again. What failed: its server ends',
    cause: ended
  })
  t.equal(await failed(ended, 500), ended, 'with room, it is something else')
  t.equal(await failed(ended, undefined), ended, 'nothing is known of a disk that is not seen')
})

test('a program that says so is believed, wherever the disk is', async t => {
  const full = new Error('the restore failed: could not extend file: No space left on device')
  const words = `the disk of the engine is full: make room on it, and try again. What failed: ${full.message}`
  t.match(await failed(full, undefined), { message: words })
  // What it had written is gone with it.
  t.match(await failed(full, 900), { message: words })
  const memory = new Error('could not resize shared memory segment "/x": No space left on device')
  t.equal(await failed(memory, 900), memory, 'memory that programs share is not on the disk')
})

test('it is said once, and problems keep their own words', async t => {
  const told = await withFullDisk(
    'its server ends',
    readerOf(async () => ({ freeBytes: 0, floorBytes: 0 }))
  )
  const error = new Error(told)
  t.equal(await failed(error, 0), error)
  const problem = new Problem(507, 'E_ENGINE_DISK_FULL', 'its disk is full (no space left on device)')
  t.equal(await failed(problem, 0), problem)
})

test('work is ended where the disk comes to its floor, with what helps', async t => {
  const disk = readerOf(async () => ({ freeBytes: 90 * mebi, floorBytes: 128 * mebi }))
  const parts = { clock, disk: { get: () => disk } }
  await t.rejects(
    whileThereIsRoom(parts as never, new AbortController().signal, async signal => {
      await clock.sleep(60_000, signal)
    }),
    {
      message:
        'the disk of the engine runs short: 90 MiB are free, and 128 are left for what runs: make room on it, and try again'
    }
  )
})
