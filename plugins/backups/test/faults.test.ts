import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireRoot } from '../../../lab/requirements.js'
import { startS3Server } from '../../../lab/s3-server.js'
import {
  backUp,
  contentOf,
  createDatabase,
  ended,
  filesOf,
  largeLines,
  lines,
  openPlatform,
  pathOf,
  restore,
  storedIn,
  untilTold,
  writeContent
} from './kit.js'

const run = promisify(execFile)

test('a dump that is not whole is no backup, and leaves nothing', { timeout: 240_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const id = await createDatabase(opened, 'Cut', lines(100_000))
  const path = pathOf(project, id)
  probe.failAfter = 1_000_000
  t.match(await backUp(admin, path), {
    status: 'failed',
    error: 'the program that dumps was killed',
    size_bytes: 0,
    sha256: null
  })
  probe.failAfter = null
  probe.endError = 'pg_dump ended with 1: a table is locked'
  t.match(await backUp(admin, path), { status: 'failed', error: 'pg_dump ended with 1: a table is locked' })
  probe.endError = null
  t.same(await filesOf(k), [])
  t.equal(probe.calls.filter(call => call === `settle backup ${id}`).length, 2, 'each was put back')
  const told = await untilTold(admin, ({ type }) => type === 'database.backup_failed', 2)
  t.equal(told.length, 2, 'each was told, and nothing else')
  t.match(
    (await admin.get('/api/stats')).body.needs_attention,
    { failed_backups: 1 },
    'the dashboard says so'
  )
  const [failed] = (await admin.get(`${path}/backups`)).body
  t.match(await admin.post(`${path}/restore`, { backup_id: failed.id }), {
    status: 409,
    body: { code: 'E_RESTORE_UNFINISHED' }
  })
  t.match(await admin.post(`${path}/backups/${failed.id}/check`), { status: 409 })
  t.match(await backUp(admin, path), { status: 'succeeded' })
})

test('a disk that is full fails it with what helps, and has room again', { timeout: 240_000 }, async t => {
  if (!requireRoot(t, 'mounts a small disk')) return
  const disk = await mkdtemp(join(tmpdir(), 'busbar-small-'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk])
  t.teardown(async () => {
    await run('umount', [disk])
    await rm(disk, { recursive: true, force: true })
  })
  const opened = await openPlatform(t, { environment: { DATABASE_BACKUP_DIR: disk } })
  const { admin, project } = opened
  const path = pathOf(project, await createDatabase(opened, 'Large', largeLines()))
  t.match(await backUp(admin, path), {
    status: 'failed',
    error: /^the disk of the backups of this server is full, but for .*: make room/
  })
  const left = await readdir(disk, { recursive: true, withFileTypes: true })
  t.same(
    left.filter(entry => entry.isFile()),
    []
  )
  const small = pathOf(project, await createDatabase(opened, 'Small', lines(10)))
  t.match(await backUp(admin, small), { status: 'succeeded' })
})

test('a destination that cuts off, refuses, is full or loses a file', { timeout: 600_000 }, async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { admin, probe, project } = opened
  const content = largeLines()
  const id = await createDatabase(opened, 'Remote', content)
  const path = pathOf(project, id)
  const run = await storedIn(opened, s3, path)
  const backUpRemotely = async () => {
    await run()
    return await ended(admin, `${path}/backups`)
  }

  await t.test('is asked again for a part, and for the rest of a file', async t => {
    s3.fault = ({ part, number }) => (part !== null && number % 2 === 0 ? 'cut' : undefined)
    const backup = await backUpRemotely()
    t.match(backup, { status: 'succeeded', has_remote: true })
    await writeContent(probe, id, 'lost\n')
    let halves = 0
    s3.fault = ({ method }) => (method === 'GET' && halves++ < 2 ? 'half' : undefined)
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded' })
    s3.fault = undefined
    t.ok(halves >= 2)
    t.ok((await contentOf(probe, id)) === content)
    t.same(s3.uploads(), [])
  })

  await t.test('is asked again where it falls silent in the middle of an upload', async t => {
    let silent = 0
    s3.fault = ({ part }) => (part === 2 && silent++ < 1 ? 'silence' : undefined)
    await run()
    // Two minutes pass before the silence of a store counts as its end.
    const backup = await ended(admin, `${path}/backups`, 300_000)
    t.match(backup, { status: 'succeeded', has_remote: true })
    s3.fault = undefined
    t.equal(silent, 2)
    t.same(s3.uploads(), [])
  })

  await t.test('fails the backup with the reason, and no part of it is left', async t => {
    const before = s3.objects.size
    for (const [fault, words] of [
      ['full', /is full/],
      ['refuse', /refuses these keys/]
    ] as const) {
      s3.fault = ({ part }) => (part === 2 ? fault : undefined)
      t.match(await backUpRemotely(), { status: 'failed', error: words })
      s3.fault = undefined
      t.same(s3.uploads(), [])
      t.equal(s3.objects.size, before)
    }
  })

  await t.test('and a file that was changed or removed there is refused', async t => {
    const backup = await backUpRemotely()
    const key = backup.remote_key as string
    const good = s3.objects.get(key) ?? Buffer.alloc(0)
    const bad = Buffer.from(good)
    bad.writeUInt8(bad.readUInt8(good.length - 100) ^ 8, good.length - 100)
    probe.calls.length = 0
    s3.replace(key, bad)
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'failed', error: /is damaged/ })
    s3.lose(key)
    t.match(await restore(admin, path, { backup_id: backup.id }), {
      status: 'failed',
      error: /is not there any more/
    })
    t.notOk(probe.calls.some(call => call.startsWith('restore')))
    t.ok((await contentOf(probe, id)) === content)
    await untilTold(admin, ({ type }) => type === 'database.restore_failed')
  })

  await t.test('a backup is erased there once the destination answers again', async t => {
    const backup = await backUpRemotely()
    s3.fault = () => 'refuse'
    t.equal((await admin.delete(`${path}/backups/${backup.id}`)).status, 200)
    await until(
      () => s3.requests.some(({ method, key }) => method === 'DELETE' || key === ''),
      'it to be asked'
    )
    s3.fault = undefined
    await opened.k.enqueue('backups', 'sweep', {})
    await until(() => !s3.objects.has(backup.remote_key as string), 'the file to go')
  })
})

test('a restore is refused where there is too little room', { timeout: 60_000 }, async t => {
  const opened = await openPlatform(t)
  const { admin, probe, project } = opened
  const id = await createDatabase(opened, 'Narrow', lines(1_000))
  const backup = await backUp(admin, pathOf(project, id))
  probe.free = 10
  t.match(await restore(admin, pathOf(project, id), { backup_id: backup.id }), {
    status: 'failed',
    error: /there is too little room on the disk .*: make room on it, and try again; nothing was touched/
  })
  t.notOk(probe.calls.includes(`restore ${id}`))
})
