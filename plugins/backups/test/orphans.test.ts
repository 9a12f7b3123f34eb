import { existsSync } from 'node:fs'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { backupKeeper } from '../api.js'
import {
  backUp,
  contentOf,
  createDatabase,
  createProject,
  ended,
  filesOf,
  lines,
  openPlatform,
  pathOf,
  removeDatabase,
  restore
} from './kit.js'

test('backups of what was deleted', { timeout: 200_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const url = `/api/projects/${project}/orphaned-backups`

  await t.test('are kept, listed, and make the database again under its name', async t => {
    const content = lines(500)
    const id = await createDatabase(opened, 'Gone', content)
    const backup = await backUp(admin, pathOf(project, id))
    t.same(await k.service(backupKeeper).impact('database', id), { backupCount: 1, destinations: ['local'] })
    t.notOk(JSON.stringify(await k.query('select * from backups.source')).includes('credentials of'))
    await removeDatabase(opened, id)
    t.match((await admin.get(url)).body, [
      {
        id: backup.id,
        status: 'succeeded',
        database_name: 'Gone',
        database_slug: 'gone',
        database_type: 'postgres'
      }
    ])
    t.same((await admin.get(`/api/projects/${project}/backups`)).body, [])
    t.equal((await (await k.as.token('write')).post(`${url}/${backup.id}/restore`)).status, 403)
    const made = await admin.post(`${url}/${backup.id}/restore`)
    t.match(made, { status: 202, body: { name: 'Gone', status: 'creating' } })
    const fresh = pathOf(project, made.body.id)
    t.match(await ended(admin, `${fresh}/restores`), { status: 'succeeded', backup_id: backup.id })
    t.equal(await contentOf(probe, made.body.id), content)
    t.ok(probe.calls.includes(`ready ${made.body.id}`))
    t.match(await admin.post(`${url}/${backup.id}/restore`), {
      status: 409,
      body: {
        code: 'E_DATABASE_TAKEN',
        error:
          /^the name Gone is taken: with "from_other": true the backup is restored into what has that name/
      }
    })
    const other = await createDatabase(opened, 'Heir', 'before\n')
    const into = { backup_id: backup.id, from_other: true }
    t.match(await restore(admin, pathOf(project, other), into), { status: 'succeeded' })
    t.equal(await contentOf(probe, other), content)
    t.match(await admin.delete(`${url}/${backup.id}`), { status: 200, body: { status: 'deleted' } })
    t.same((await admin.get(url)).body, [])
    await until(async () => !(await filesOf(k)).some(name => name.includes('/gone-')), 'the file to go')
  })

  await t.test('go with it where that is asked for', async t => {
    const id = await createDatabase(opened, 'Erased', lines(10))
    await backUp(admin, pathOf(project, id))
    await removeDatabase(opened, id, true)
    t.same((await admin.get(url)).body, [])
    await until(async () => !(await filesOf(k)).some(name => name.includes('/erased-')), 'the file to go')
    await until(
      async () => (await k.query("select from backups.source where name = 'Erased'")).length === 0,
      'the tombstone to go'
    )
  })

  await t.test('have ninety days, and are noticed when nobody has told', async t => {
    const tidy = async () => {
      await k.enqueue('backups', 'schedule.tidy', { dueAt: new Date().toISOString() })
    }
    const id = await createDatabase(opened, 'Silent', lines(10))
    const backup = await backUp(admin, pathOf(project, id))
    await k.query('delete from backup_probe.database where id = $1', [id])
    await tidy()
    await until(async () => (await admin.get(url)).body.length === 1, 'it to be noticed')
    t.match((await admin.get(url)).body, [{ id: backup.id }])
    const age = async (days: number) => {
      await k.query(
        "update backups.source set deleted_at = now() - make_interval(days => $1) where name = 'Silent'",
        [days]
      )
    }
    await age(89)
    const young = await createDatabase(opened, 'Witness', lines(1))
    await backUp(admin, pathOf(project, young))
    await k.query('delete from backup_probe.database where id = $1', [young])
    await tidy()
    await until(async () => (await admin.get(url)).body.length === 2, 'the job to have looked')
    await age(91)
    await k.configure('backups', { orphaned_backup_retention_days: 0 })
    // The same job removes it, once it has looked for those whose time is over.
    await k.query(
      `update backups.backup set deleting_at = now() where source_id = (select id from backups.source where name = 'Witness')`
    )
    await tidy()
    await until(
      async () => !(await filesOf(k)).some(name => name.includes('/witness-')),
      'the job to be over'
    )
    t.match((await admin.get(url)).body, [{ id: backup.id }], '0 days are for ever')
    await k.configure('backups', { orphaned_backup_retention_days: 90 })
    await tidy()
    await until(async () => (await admin.get(url)).body.length === 0, 'its time to be over')
    await until(async () => !(await filesOf(k)).some(name => name.includes('/silent-')), 'the file to go')
  })

  await t.test('go with their project, and a destination that is away does not keep it', async t => {
    const s3 = await startS3Server(t)
    const second = { ...opened, project: await createProject(admin, 'Second') }
    const id = await createDatabase(second, 'Last', lines(10))
    const path = pathOf(second.project, id)
    await backUp(admin, path)
    const destination = await admin.post(`/api/projects/${second.project}/backup-destinations`, {
      name: 'Store',
      provider: 'minio',
      endpoint: s3.host,
      bucket: s3Bucket,
      use_ssl: false,
      ...s3Keys
    })
    const config = await admin.post(`${path}/backup-configs`, {
      destination_id: destination.body.id,
      schedule: '0 3 1 1 *'
    })
    await admin.post(`${path}/backup-configs/${config.body.id}/run`)
    t.match(await ended(admin, `${path}/backups`), { status: 'succeeded', has_remote: true })
    const file = (await filesOf(k)).find(name => name.includes('/last-')) ?? ''
    t.ok(existsSync(file))
    s3.fault = () => 'refuse'
    t.equal((await admin.delete(`/api/projects/${second.project}`)).status, 200)
    await until(
      async () =>
        (await k.query('select from projects.project where id = $1', [second.project])).length === 0,
      'the project to be gone'
    )
    t.notOk(existsSync(file))
    t.same(await k.query('select from backups.destination where project_id = $1', [second.project]), [])
  })
})
