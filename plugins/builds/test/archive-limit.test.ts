import { test } from 'tap'
import type { Disk } from '../admission/admission-decision.js'
import { archiveLimit, roomyArchiveLimit } from '../disk/archive-limit.js'

const mib = 2 ** 20
const config = { disk_floor_mib: 1024, build_disk_mib: 10_240, failed_steps_mib: 1024 }
const disk = (freeMib: number): Disk => ({
  what: 'the disk',
  path: '/engine',
  freeBytes: freeMib * mib,
  isEngines: true
})

test('archives may unpack to what a build may write, and leave the floor free', t => {
  t.equal(archiveLimit([disk(100_000)], config), 10_240 * mib)
  t.equal(archiveLimit([disk(100_000), disk(3000)], config), (3000 - 1024) * mib, 'on the fuller disk')
  t.equal(archiveLimit([disk(1024)], config), 0)
  t.throws(() => archiveLimit([disk(100_000), disk(1023)], config), { code: 'E_BUILD_DISK_SHORT' })
  t.end()
})

test('no archive is refused while unused data takes the room', async t => {
  let free = disk(3000)
  let rounds = 0
  const parts = {
    config,
    disks: async () => [free],
    room: {
      make: async () => {
        rounds++
        free = disk(100_000)
        return true
      }
    }
  }
  t.equal(await roomyArchiveLimit(parts), (3000 - 1024) * mib)
  t.equal(rounds, 0, 'nothing goes for an archive that fits')
  t.equal(await roomyArchiveLimit(parts, (3000 - 1024) * mib), 10_240 * mib)
  t.equal(rounds, 1)
  t.equal(await roomyArchiveLimit(parts, 10_240 * mib), 10_240 * mib)
  t.equal(rounds, 1, 'nor for one that is too large for any disk')
  free = disk(1000)
  t.equal(await roomyArchiveLimit(parts), 10_240 * mib, 'a disk that is short')
})
