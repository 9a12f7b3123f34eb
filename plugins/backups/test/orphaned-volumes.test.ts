import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import {
  contentOf,
  createVolume,
  createVolumeAgain,
  ended,
  filesOf,
  lines,
  openPlatform,
  removeVolume
} from './kit.js'

test('backups of deleted volumes', { timeout: 240_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const url = `/api/projects/${project}/orphaned-volume-backups`
  const pathOf = (application: string, id: string): string =>
    `/api/projects/${project}/applications/${application}/volumes/${id}`
  const orphansOf = async (application: string) =>
    (await admin.get(`${url}?application_id=${application}`)).body as Array<{ readonly id: string }>
  const isThere = async (name: string): Promise<boolean> =>
    (await filesOf(k)).some(file => file.includes(`/${name}-`))
  const tidy = async (): Promise<void> => {
    await k.enqueue('backups', 'schedule.tidy', { dueAt: new Date().toISOString() })
  }
  const destination = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: 'Cellar',
    provider: 'local'
  })

  /** One with a schedule. */
  const scheduled = async (name: string) => {
    const content = lines(10)
    const { id, application } = await createVolume(opened, name, content)
    const path = pathOf(application, id)
    const config = await admin.post(`${path}/backup-configs`, {
      destination_id: destination.body.id,
      schedule: '0 3 1 1 *'
    })
    const run = async (): Promise<void> => {
      const { status } = await admin.post(`${path}/backup-configs/${config.body.id}/run`)
      if (status !== 202) throw new Error(`no backup: ${status}`)
    }
    return { id, application, name, path, content, run }
  }
  /** One with a backup. */
  const made = async (name: string) => {
    const volume = await scheduled(name)
    await volume.run()
    const backup = await ended(admin, `${volume.path}/backups`)
    t.match(backup, { status: 'succeeded' })
    return { ...volume, backup }
  }

  for (const isTold of [true, false]) {
    const how = isTold ? '' : ', also where nobody has told'
    await t.test(`are kept and listed${how}`, async t => {
      const volume = await made(isTold ? 'told' : 'untold')
      const { application, name, backup } = volume
      await removeVolume(opened, volume, { isTold })
      if (!isTold) await tidy()
      await until(async () => (await orphansOf(application)).length === 1, 'it to be orphaned')
      const shown = {
        id: backup.id,
        status: 'succeeded',
        application_id: application,
        app_name: 'Web',
        volume_name: name,
        mount_path: '/data',
        config_id: null
      }
      t.match(await orphansOf(application), [shown])
      t.match((await (await k.as.token('read')).get(url)).body, [shown])
      t.same((await admin.get(`/api/projects/${project}/orphaned-backups`)).body, [], 'of databases')
      t.same((await admin.get(`/api/projects/${project}/backups`)).body, [])
      t.equal((await k.query('select from backups.config')).length, 0, 'its schedules end')
      await k.enqueue('backups', 'sweep', {})
      await until(
        async () =>
          (await k.query("select from graphile_worker.jobs where task_identifier ~ '^backups:sweep'"))
            .length === 0,
        'what goes to have gone'
      )
      t.ok(await isThere(name))
      t.equal((await (await k.as.token('write')).delete(`${url}/${backup.id}`)).status, 403)
      t.match(await admin.delete(`${url}/${backup.id}`), { status: 200, body: { status: 'deleted' } })
      await until(async () => !(await isThere(name)), 'the file to go')
    })

    await t.test(`are those of the next one of its name${how}`, async t => {
      const volume = await made(isTold ? 'again' : 'again-later')
      const { application, name, backup, content } = volume
      await removeVolume(opened, volume, { isTold })
      const elsewhere = await createVolume(opened, `${name}-2`, '')
      await k.query('update backup_probe.volume set name = $1 where id = $2', [name, elsewhere.id])
      const next = await createVolumeAgain(opened, volume, { isTold })
      if (!isTold) await tidy()
      const path = pathOf(application, next)
      await until(async () => (await admin.get(`${path}/backups`)).body.length === 1, 'it to have them')
      t.match((await admin.get(`${path}/backups`)).body, [{ id: backup.id, status: 'succeeded' }])
      t.same(await orphansOf(application), [])
      t.same((await admin.get(`${pathOf(elsewhere.application, elsewhere.id)}/backups`)).body, [])
      t.match((await admin.get(`/api/projects/${project}/backups`)).body, [{ resource_id: next }])
      t.equal((await admin.post(`${path}/backups/${backup.id}/restore`, {})).status, 202)
      t.match(await ended(admin, `${path}/restores`), { status: 'succeeded' })
      t.equal(await contentOf(probe, next), content)
      await removeVolume(opened, { id: next, name })
      const third = await createVolumeAgain(opened, volume)
      t.match((await admin.get(`${pathOf(application, third)}/backups`)).body, [{ id: backup.id }])
      await removeVolume(opened, { id: third, name }, { deleteBackups: true })
      await until(async () => !(await isThere(name)), 'the file to go where that is asked for')
    })

    await t.test(`go with their application${how}, not those of others`, async t => {
      const volume = await made(isTold ? 'leaving' : 'left')
      const { application, name, backup } = volume
      const other = await made(`${name}-other`)
      await removeVolume(opened, volume)
      await removeVolume(opened, other)
      if (isTold) {
        t.equal((await admin.delete(`/api/projects/${project}/applications/${application}`)).status, 200)
        await k.runRemovalsNow()
      } else {
        probe.ended.add(application)
        await tidy()
      }
      await until(
        async () => (await k.query('select from backups.backup where id = $1', [backup.id])).length === 0,
        'it to go'
      )
      t.notOk((await filesOf(k)).some(file => file.includes(`/${name}-2`)))
      t.match(await orphansOf(other.application), [{ id: other.backup.id }])
      t.ok(await isThere(other.name))
    })
  }

  await t.test('are restored into another volume of the project', async t => {
    const volume = await made('source')
    await removeVolume(opened, volume)
    const target = await createVolume(opened, 'target', 'before\n')
    const restore = async (body: object) => await admin.post(`${url}/${volume.backup.id}/restore`, body)
    t.equal((await restore({})).status, 400)
    t.equal((await restore({ target_volume_id: volume.id })).status, 404, 'that is gone')
    t.match(await restore({ target_volume_id: target.id }), { status: 202, body: { status: 'restoring' } })
    t.match(await ended(admin, `${pathOf(target.application, target.id)}/restores`), { status: 'succeeded' })
    t.equal(await contentOf(probe, target.id), volume.content)
    t.match(await orphansOf(volume.application), [{ id: volume.backup.id }])
  })

  await t.test('have ninety days', async t => {
    const volume = await made('aged')
    await removeVolume(opened, volume)
    await k.query(
      "update backups.source set deleted_at = now() - interval '91 days' where resource_id = $1",
      [volume.id]
    )
    await tidy()
    await until(async () => !(await isThere('aged')), 'the file to go')
    t.same(await orphansOf(volume.application), [])
  })

  await t.test('are none where they were being made', async t => {
    const volume = await scheduled('busy')
    let release = (): void => {}
    probe.hold = new Promise(resolve => {
      release = resolve
    })
    t.teardown(() => release())
    await volume.run()
    await until(() => probe.calls.includes(`dump ${volume.id}`), 'it to be made')
    await removeVolume(opened, volume)
    const next = await createVolumeAgain(opened, volume)
    await until(
      async () => (await k.query("select from backups.backup where status = 'running'")).length === 0,
      'it to end',
      30_000
    )
    await until(async () => !(await isThere('busy')), 'what was written of it to go')
    t.ok(probe.calls.includes(`settle backup ${volume.id}`))
    t.same((await admin.get(`${pathOf(volume.application, next)}/backups`)).body, [])
    t.same(await orphansOf(volume.application), [])
    const told = (await admin.get('/api/notifications')).body.items as Array<{ readonly type: string }>
    t.notOk(
      told.some(({ type }) => type.endsWith('backup_failed')),
      'nobody is told that it has failed'
    )
  })
})
