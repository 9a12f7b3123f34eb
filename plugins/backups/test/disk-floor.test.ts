import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { requireRoot } from '../../../lab/requirements.js'
import { LocalStorage } from '../destinations/local-storage.js'

const run = promisify(execFile)
const signal = new AbortController().signal
const mebibyte = 1024 ** 2

test('backups leave room on a disk that others write to', async t => {
  if (!requireRoot(t, 'mounts a small disk')) return
  const disk = await mkdtemp(join(tmpdir(), 'busbar-floor-'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', disk])
  t.teardown(async () => {
    await run('umount', [disk])
    await rm(disk, { recursive: true, force: true })
  })
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(disk)
    return bavail * bsize
  }
  let least = Number.POSITIVE_INFINITY
  let given = 0
  async function* endless(): AsyncGenerator<Buffer> {
    for (; given < 100 * mebibyte; given += 256 * 1024) {
      least = Math.min(least, await free())
      yield randomBytes(256 * 1024)
    }
  }
  const storage = new LocalStorage(join(disk, 'project'))
  await t.rejects(storage.put('a/large.backup.gz', endless(), { signal }), {
    name: 'StorageError',
    message: /^the disk of the backups of this server is full, but for what is left to the platform/
  })
  t.ok(given > 55 * mebibyte, `it took what it may: ${given}`)
  t.ok(least >= Math.floor((64 * mebibyte) / 20), `${least} bytes were free at the least`)
  t.same(
    (await readdir(disk, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile()),
    [],
    'nothing is left half'
  )
  async function* small(): AsyncGenerator<Buffer> {
    yield Buffer.from('small')
  }
  await storage.put('a/small.backup.gz', small(), { signal })
  t.equal(await storage.size('a/small.backup.gz', { signal }), 5)
})
