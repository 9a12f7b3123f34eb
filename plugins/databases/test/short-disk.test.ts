import { execFile } from 'node:child_process'
import { mkdtemp, open, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { fillDisk, mebi, startEngineLab } from './engine-lab.js'
import { untilRunning } from './lab.js'
import { filledPostgres, heldDumps, leftOf, startWriter, untilEnded, untilUpgraded } from './postgres-lab.js'

const run = promisify(execFile)
const isHere = async (t: Test): Promise<boolean> =>
  (await requireDatabaseImages(t)) && (await requireSecondEngine(t))

test('an upgrade for which there is no room is not begun', async t => {
  if (!(await isHere(t))) return
  const lab = await startEngineLab(t)
  const { ann, k, engine } = lab
  await k.configure('builds', { disk_floor_mib: 128 })
  const made = await filledPostgres(lab)
  const free = await fillDisk(engine, 200 * mebi)
  await ann.post(`${made.path}/upgrade`, { target_version: '15' })
  t.match(await untilUpgraded(ann, made), {
    phase: 'failed',
    error: /has \d+ MiB free, and a copy beside the old volume takes \d+/
  })
  await untilRunning(ann, made.path)
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
  await free()
})

test('an upgrade during which the disk runs short ends before its server has no room', async t => {
  if (!(await isHere(t))) return
  const lab = await startEngineLab(t)
  const { ann, k, engine } = lab
  await k.configure('builds', { disk_floor_mib: 128 })
  const made = await filledPostgres(lab)
  const writer = startWriter(t, lab, made)
  await writer.untilMore()
  const dumps = await heldDumps(t, lab, made)
  await ann.post(`${made.path}/upgrade`, { target_version: '15' })
  await dumps.untilOneWaits()
  const free = await fillDisk(engine, 100 * mebi)
  const upgrade = await untilUpgraded(ann, made)
  t.match(upgrade, { phase: 'failed', error: /the disk of the engine runs short/ }, upgrade.log)
  await dumps.release()
  await writer.untilMore()
  await free()
  t.same(await writer.lost(), [])
  t.match((await ann.get(made.path)).body, { version: '14', status: 'running' })
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
})

test('a disk that is full while everything is restored for an upgrade loses no row', async t => {
  if (!(await isHere(t))) return
  const lab = await startEngineLab(t)
  const { ann, k, engine } = lab
  // Nothing is watched: the servers run into the end of the disk.
  await k.configure('builds', { disk_floor_mib: 0 })
  const made = await filledPostgres(lab)
  const writer = startWriter(t, lab, made)
  await writer.untilMore()
  const dumps = await heldDumps(t, lab, made)
  await ann.post(`${made.path}/upgrade`, { target_version: '15' })
  await dumps.untilOneWaits()
  const free = await fillDisk(engine, 4 * mebi)
  await dumps.release()
  const upgrade = await untilUpgraded(ann, made)
  t.match(
    upgrade,
    { phase: 'failed', error: /^the disk of the engine is full, but for \d+ MiB: make room on it.* failed/s },
    upgrade.log
  )
  await free()
  await until(async () => (await ann.get(made.path)).body.status === 'running', 'it to run', 420_000)
  await writer.untilMore()
  t.same(await writer.lost(), [])
  t.match((await ann.get(made.path)).body, { version: '14' })
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
})

test('a disk that a restore fills leaves what was there, and says why', async t => {
  if (!(await isHere(t))) return
  const lab = await startEngineLab(t)
  const { ann, k, engine } = lab
  const made = await filledPostgres(lab, '15')
  await ann.post(`${made.path}/backups`)
  const backup = await untilEnded(ann, made.path, 'backups')
  t.equal(backup.status, 'succeeded', backup.log)
  await untilRunning(ann, made.path)
  const writer = startWriter(t, lab, made)
  await writer.untilMore()
  // The dump would have room, and with it the server that it is restored into has not.
  const cases = [
    ['is watched', 128, 144, /^the disk of the engine runs short: .*: make room on it/],
    ['is full', 0, 20, /^the disk of the engine is full, but for \d+ MiB: make room on it.*its server ends/s]
  ] as const
  for (const [before, [what, floor, left, words]] of cases.entries())
    await t.test(`where it ${what}`, async t => {
      await k.configure('builds', { disk_floor_mib: floor })
      const free = await fillDisk(engine, left * mebi)
      t.match(await ann.post(`${made.path}/restore`, { backup_id: backup.id }), { status: 202 })
      const restore = await untilEnded(ann, made.path, 'restores', before)
      t.match(restore, { status: 'failed', error: words }, restore.log)
      t.notMatch(restore.log, /restoring into a server/, 'its server has not begun')
      await free()
      // Its own server may have ended for want of room.
      await until(async () => (await ann.get(made.path)).body.status === 'running', 'it to run', 420_000)
      await writer.untilMore()
      t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
    })
  t.same(await writer.lost(), [])
})

test('the disk of a test is filled while others write to it', async t => {
  if (!(await isHere(t))) return
  const dataRoot = await mkdtemp(join(tmpdir(), 'busbar-small-'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=512m', 'tmpfs', dataRoot])
  t.teardown(async () => {
    await run('umount', ['--lazy', dataRoot])
    await rm(dataRoot, { recursive: true, force: true })
  })
  const other = await open(join(dataRoot, 'other'), 'w')
  t.teardown(() => other.close())
  const write = async (): Promise<void> => {
    for (let written = 0; written < 200; written++) await other.write(Buffer.alloc(mebi))
  }
  // More than the disk is to have left, until it has no more.
  const writing = write().catch(() => {})
  const free = await fillDisk({ dataRoot }, mebi)
  await writing
  const { bavail, bsize } = await statfs(dataRoot)
  t.ok(bavail * bsize <= mebi)
  await free()
})
