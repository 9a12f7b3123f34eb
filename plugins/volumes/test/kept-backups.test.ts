import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'

/** Where no application is deleted, no engine is needed. */
const options = { environment: { DOCKER_HOST: 'unix:///nowhere.sock' } }

/** Backups as they are when they have succeeded, with files on this machine. */
async function opened(k: TestKernel) {
  const admin = await k.as.session()
  const slug = `kept-${Math.random().toString(36).slice(2, 8)}`
  const { body: project } = await admin.post('/api/projects', { name: slug, slug })
  const { body: application } = await admin.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const applicationPath = `/api/projects/${project.id}/applications/${application.id as string}`
  const path = `${applicationPath}/volumes`
  const orphans = `/api/projects/${project.id}/orphaned-volume-backups`

  const add = async (name: string, mountPath = `/${name}`): Promise<string> =>
    await until(async () => {
      const { status, body } = await admin.post(path, { name, mount_path: mountPath })
      return status === 201 && (body.id as string)
    }, `the name ${name} to be free`)
  /** A volume with a backup. */
  const made = async (name: string) => {
    const id = await add(name)
    const [backup, source, key] = [randomUUID(), randomUUID(), `${name}.tar.gz.age`]
    const folder = join(k.state.directory, 'backups', 'databases', project.id)
    await mkdir(folder, { recursive: true })
    const file = join(folder, key)
    await writeFile(file, 'of years')
    await k.query(
      `insert into backups.source (id, project_id, kind, resource_id, name, slug, engine, version, application_id, application_name, mount_path)
      values ($1, $2, 'volume', $3, $4, $4, 'volume', '', $5, 'web', $6)`,
      [source, project.id, id, name, application.id, `/${name}`]
    )
    await k.query(
      `insert into backups.backup (id, source_id, status, started_at, finished_at, key, has_file, version, format, databases, quiesce, sha256, raw_bytes, size_bytes)
      values ($1, $2, 'succeeded', now(), now(), $3, true, '', 'tar', '{}', false, 'none', 8, 8)`,
      [backup, source, key]
    )
    return { id, backup, file }
  }
  return {
    admin,
    add,
    made,
    orphans,
    path,
    applicationPath,
    backupsOf: async (id: string) => (await admin.get(`${path}/${id}/backups`)).body
  }
}

/** Until the removal of all volumes that were deleted is over, and what goes with them has gone. */
async function untilRemoved(k: TestKernel): Promise<void> {
  await k.runRemovalsNow()
  await until(
    async () => (await k.query('select from volumes.volume where deleting_at is not null')).length === 0,
    'the volumes to be gone'
  )
  const jobs =
    "select from graphile_worker.jobs where task_identifier ~ '^backups:' and task_identifier !~ 'schedule'"
  await until(async () => (await k.query(jobs)).length === 0, 'what goes to have gone')
}

test('a volume that is made anew at another path has its backups again', async t => {
  const k = await createTestKernel(options)
  t.teardown(() => k.close())
  const { admin, add, made, orphans, path, backupsOf } = await opened(k)
  const data = await made('data')
  const other = await made('other')
  const deleted = await admin.delete(`${path}/${data.id}`)
  t.match(deleted, {
    status: 200,
    body: {
      warning: /its files stay\. its backup is kept as an orphaned one, which the next volume of this name/
    }
  })
  await untilRemoved(k)
  t.ok(existsSync(data.file), 'the file of the backup is there')
  t.match((await admin.get(orphans)).body, [{ id: data.backup, volume_name: 'data', mount_path: '/data' }])
  const again = await add('data', '/elsewhere')
  t.match(await backupsOf(again), [{ id: data.backup, status: 'succeeded' }])
  t.match((await admin.get(orphans)).body, { length: 0 })
  t.match(await backupsOf(other.id), [{ id: other.backup }], 'another volume has its own')
  await add('third')
  t.match(await backupsOf(again), [{ id: data.backup }])
})

test('backups outlive the files of a volume, unless they are to be erased as well', async t => {
  const k = await createTestKernel(options)
  t.teardown(() => k.close())
  const { admin, made, orphans, path } = await opened(k)
  const data = await made('data')
  t.match(await admin.delete(`${path}/${data.id}?delete_data=true`), {
    body: { warning: /its files are removed then\. its backup is kept/ }
  })
  const gone = await made('gone')
  t.match(await admin.delete(`${path}/${gone.id}?delete_backups=true`), {
    body: { warning: /its files stay\. its backup is erased/ }
  })
  await untilRemoved(k)
  await until(() => !existsSync(gone.file), 'the file of the other to go')
  t.ok(existsSync(data.file))
  t.match((await admin.get(orphans)).body, [{ id: data.backup }])
  await k.query('delete from volumes.engine_volume')
  const { body } = await admin.post(path, { name: 'data', mount_path: '/data' })
  t.match((await admin.get(`${path}/${body.id}/backups`)).body, [{ id: data.backup }], 'made anew, empty')
})

test('what becomes of backups is remembered over a stop between the deletion and its end', async t => {
  const first = await createTestKernel(options)
  t.teardown(() => first.close())
  const { admin, made, path, orphans } = await opened(first)
  const kept = await made('kept')
  const gone = await made('gone')
  // The removal waits for a row, and is cut off.
  await first.query('create table volumes.holder (id uuid references volumes.volume (id) on delete restrict)')
  await first.query('insert into volumes.holder values ($1), ($2)', [kept.id, gone.id])
  await admin.delete(`${path}/${kept.id}`)
  await admin.delete(`${path}/${gone.id}?delete_backups=true`)
  await first.stop()
  const k = await createTestKernel({ ...options, state: first.state })
  t.teardown(() => k.stop())
  t.ok(existsSync(gone.file))
  await k.query('drop table volumes.holder')
  await untilRemoved(k)
  await until(() => !existsSync(gone.file), 'the file to go')
  t.ok(existsSync(kept.file))
  t.match((await (await k.as.session()).get(orphans)).body, [{ id: kept.backup }])
})

test('backups go with the application, those of volumes that were deleted before too', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { admin, made, orphans, path, applicationPath } = await opened(k)
  const before = await made('before')
  const present = await made('present')
  await admin.delete(`${path}/${before.id}`)
  await untilRemoved(k)
  t.ok(existsSync(before.file))
  t.equal((await admin.delete(applicationPath)).status, 200)
  await untilRemoved(k)
  await until(() => !existsSync(before.file) && !existsSync(present.file), 'both files to go')
  t.match((await admin.get(orphans)).body, { length: 0 })
})

test('what has happened while backups were off is noticed, and nothing is lost', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { admin, add, made, orphans, path, applicationPath, backupsOf } = await opened(k)
  const second = await opened(k)
  const data = await made('data')
  const left = await made('left')
  const ended = await second.made('data')
  await k.disable('backups', { cascade: true })
  t.match(await admin.delete(`${path}/${left.id}?delete_backups=true`), {
    body: { warning: /backups are off: those of the volume are kept as orphaned ones/ }
  })
  await admin.delete(`${path}/${data.id}`)
  await k.runRemovalsNow()
  const again = await add('data', '/elsewhere')
  await admin.delete(second.applicationPath)
  await until(async () => {
    await k.runRemovalsNow()
    return (await k.query('select from applications.application')).length === 1
  }, 'the application to be gone')
  await k.enable('backups')
  await k.enqueue('backups', 'schedule.tidy', { dueAt: new Date().toISOString() })
  await until(() => !existsSync(ended.file), 'the file of the application that is gone to go')
  await until(async () => (await backupsOf(again)).length === 1, 'the volume to have its backups again')
  t.match(await backupsOf(again), [{ id: data.backup }])
  t.match((await admin.get(orphans)).body, [{ id: left.backup }])
  t.ok(existsSync(data.file) && existsSync(left.file))
  t.equal((await admin.get(applicationPath)).status, 200)
})
