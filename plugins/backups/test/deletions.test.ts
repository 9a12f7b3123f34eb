import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { startS3Server } from '../../../lab/s3-server.js'
import {
  backUp,
  contentOf,
  createDatabase,
  createProject,
  ended,
  filesOf,
  lines,
  lockWaits,
  openPlatform,
  pathOf,
  removeDatabase,
  storedIn
} from './kit.js'

test('what is used is not deleted', { timeout: 240_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const made = async (name: string) => {
    const content = lines(50)
    const id = await createDatabase(opened, name, content)
    const path = pathOf(project, id)
    return { id, path, content, backup: await backUp(admin, path) }
  }
  const isThere = async (name: string) => (await filesOf(k)).some(file => file.includes(`/${name}-`))
  /** Begins a restore of it, as who asks for one does, and holds the moment before that is seen while `meanwhile` is begun. */
  const whileRestoreBegins = async <T>(backupId: string, meanwhile: () => Promise<T>): Promise<T> => {
    let answer: Promise<T> | undefined
    await k.transaction(async tx => {
      await k.query('select from backups.backup where id = $1 for update', [backupId], tx)
      answer = meanwhile()
      await until(async () => (await lockWaits(k)) > 0, 'it to wait for the backup')
      await k.query(
        `insert into backups.restore (id, source_id, backup_id, status, started_at, seen_at)
        select gen_random_uuid(), source_id, id, 'running', now(), now() from backups.backup where id = $1`,
        [backupId],
        tx
      )
    })
    if (answer === undefined) throw new Error('nothing was begun')
    return await answer
  }

  await t.test('by who asks while a restore of it begins', async t => {
    const { path, backup } = await made('Asked')
    const answer = await whileRestoreBegins(
      backup.id,
      async () => await admin.delete(`${path}/backups/${backup.id}`)
    )
    t.match(answer, { status: 409, body: { code: 'E_BACKUP_IN_USE' } })
    t.ok(await isThere('asked'))
  })

  await t.test('by its time being over while a restore of it begins', async t => {
    const { id, backup } = await made('Old')
    await removeDatabase(opened, id)
    await k.query(
      "update backups.source set deleted_at = now() - interval '91 days' where resource_id = $1",
      [id]
    )
    const witness = await made('Witness')
    await k.query('update backups.backup set deleting_at = now() where id = $1', [witness.backup.id])
    await whileRestoreBegins(backup.id, async () => {
      await k.enqueue('backups', 'sweep', {})
    })
    await until(async () => !(await isThere('witness')), 'the job to be over')
    t.same(await k.query('select deleting_at from backups.backup where id = $1', [backup.id]), [
      { deleting_at: null }
    ])
    t.ok(await isThere('old'))
  })

  await t.test('with its database, before a restore into another one has read it', async t => {
    const { id, content, backup } = await made('Removed')
    const heir = await made('Heir')
    let release = (): void => {}
    probe.holdRestore = new Promise(resolve => {
      release = resolve
    })
    t.teardown(() => release())
    const asked = await admin.post(`${heir.path}/restore`, { backup_id: backup.id, from_other: true })
    t.equal(asked.status, 202)
    await until(() => probe.calls.includes(`restore ${heir.id}`), 'the restore to begin')
    const witness = await made('Second-witness')
    await k.query('update backups.backup set deleting_at = now() where id = $1', [witness.backup.id])
    await removeDatabase(opened, id, true)
    await until(async () => !(await isThere('second-witness')), 'the job to be over')
    t.ok(await isThere('removed'))
    release()
    probe.holdRestore = null
    t.match(await ended(admin, `${heir.path}/restores`), { status: 'succeeded' })
    t.equal(await contentOf(probe, heir.id), content)
    await until(async () => !(await isThere('removed')), 'the file to go afterwards')
  })
})

test('a destination that is away keeps no file of anybody else', { timeout: 240_000 }, async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { k, admin, project } = opened
  const isThere = async (name: string) => (await filesOf(k)).some(file => file.includes(`/${name}-`))
  const path = pathOf(project, await createDatabase(opened, 'Stored', lines(10)))
  const run = await storedIn(opened, s3, path)
  await run()
  const stored = await ended(admin, `${path}/backups`)
  t.match(stored, { status: 'succeeded', has_remote: true })

  await t.test('however many it has of its own', async t => {
    // Before all others, in the order in which they are erased.
    await k.query(
      `insert into backups.backup (id, source_id, destination_id, status, started_at, finished_at, key, has_file, version, databases, quiesce, deleting_at)
      select cast('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0') as uuid), source_id, destination_id, 'succeeded', started_at,
        finished_at, 'dead/' || n, true, version, databases, quiesce, now()
      from backups.backup cross join generate_series(1, 1500) n where id = $1`,
      [stored.id]
    )
    const other = pathOf(project, await createDatabase(opened, 'Local', lines(10)))
    const local = await backUp(admin, other)
    await k.query('update backups.backup set deleting_at = now() where id = $1', [local.id])
    s3.fault = () => 'refuse'
    await k.enqueue('backups', 'sweep', {})
    await until(async () => !(await isThere('local')), 'the file to go')
    const [dead] = await k.query<{ total: number }>(
      "select count(*)::int as total from backups.backup where key like 'dead/%'"
    )
    t.equal(dead?.total, 1500, 'and is asked again another time')
    s3.fault = undefined
    await k.query("delete from backups.backup where key like 'dead/%'")
  })

  await t.test('also while it is waited for', async t => {
    s3.fault = () => 'silence'
    t.equal((await admin.delete(`${path}/backups/${stored.id}`)).status, 200)
    const asked = s3.requests.length
    await until(() => s3.requests.length > asked, 'it to be asked')
    const ben = await k.as.session('ben')
    const second = await createProject(ben, 'Second')
    const bens = pathOf(second, await createDatabase({ ...opened, project: second }, 'Bens', lines(10)))
    const local = await backUp(ben, bens)
    t.equal((await ben.delete(`${bens}/backups/${local.id}`)).status, 200)
    await until(async () => !(await isThere('bens')), 'the file of somebody else to go', 10_000)
    s3.fault = undefined
  })
})
