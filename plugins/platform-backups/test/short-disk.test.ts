import { execFile } from 'node:child_process'
import { readdir, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireRoot } from '../../../lab/requirements.js'
import { fill, folder } from './faults-kit.js'
import { backUp } from './kit.js'

const mebibyte = 2 ** 20

test(
  'a backup that would take the last of a disk fails before, as the database of the platform is on it too',
  { timeout: 280_000 },
  async t => {
    if (!requireRoot(t, 'mounts a small disk')) return
    const disk = await folder(t)
    await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', disk])
    t.teardown(async () => await promisify(execFile)('umount', [disk]))
    const k = await createTestKernel({ environment: { CONTROL_PLANE_BACKUP_DIR: disk } })
    t.teardown(() => k.close())
    await k.query(fill(120))
    const admin = await k.as.session()
    let least = 40 * mebibyte
    let isWatching = true
    const watching = (async () => {
      while (isWatching) {
        const { bavail, bsize } = await statfs(disk)
        least = Math.min(least, bavail * bsize)
      }
    })()
    const run = await backUp(admin).finally(() => {
      isWatching = false
    })
    await watching
    t.match(run, {
      status: 'failed',
      error:
        /^the disk of .* is full: 2\.\d MiB are free, and backups leave 2\.0 MiB, .*: make room, keep fewer archives/
    })
    t.ok(least < 10 * mebibyte, `it wrote: ${least} bytes were left at the least`)
    t.ok(least >= 2 * mebibyte, `${least} bytes were left at the least`)
    t.same(await readdir(disk), [], 'what was written is gone')
    await k.query('drop table platform_backups.filler')
    t.match(await backUp(admin), { status: 'succeeded' })
  }
)
