import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { createDatabase, createVolume, ended, lines, openPlatform, pathOf, untilTold } from './kit.js'

const hour = 3_600_000

test('schedules of backups', { timeout: 200_000 }, async t => {
  const s3 = await startS3Server(t)
  const clock = testClock('2026-11-29T01:30:00Z')
  const opened = await openPlatform(t, { clock, environment: { JWT_EXPIRY_HOURS: '72' } })
  const { k, admin, probe, project } = opened
  const {
    body: { id: destination }
  } = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: 'Store',
    provider: 'minio',
    endpoint: s3.host,
    bucket: s3Bucket,
    prefix: 'all',
    use_ssl: false,
    ...s3Keys
  })
  const config = { destination_id: destination, schedule: '0 3 * * *' }
  /** Without all that happens every second in between. */
  const later = async (ms: number): Promise<void> => {
    clock.set(ms)
    await clock.advance(31_000)
  }
  const backupsOf = async (path: string) => (await admin.get(`${path}/backups`)).body

  await t.test('one is made, with defaults, changed in part, and deleted without its backups', async t => {
    const id = await createDatabase(opened, 'Plain', lines(10))
    const path = pathOf(project, id)
    const made = await admin.post(`${path}/backup-configs`, config)
    t.match(made, {
      status: 201,
      body: {
        database_id: id,
        destination_id: destination,
        schedule: '0 3 * * *',
        time_zone: 'UTC',
        drill_schedule: '30 3 * * 0',
        prefix: '',
        keep_latest: null,
        enabled: true,
        databases: [],
        all_databases: true,
        last_run_at: null
      }
    })
    const one = `${path}/backup-configs/${made.body.id}`
    const changed = await admin.put(one, { databases: ['shop'], keep_latest: 3, prefix: '/nightly/' })
    t.match(changed, {
      status: 200,
      body: {
        schedule: '0 3 * * *',
        databases: ['shop'],
        all_databases: false,
        keep_latest: 3,
        prefix: 'nightly'
      }
    })
    t.match((await admin.put(one, { keep_latest: null })).body, { keep_latest: null, databases: ['shop'] })
    t.match(await admin.post(`${one}/run`), { status: 202 })
    const backup = await ended(admin, `${path}/backups`)
    t.match(backup, {
      status: 'succeeded',
      config_id: made.body.id,
      has_remote: true,
      remote_key: /^all\/nightly\/plain-20261129T\d{6}Z\.backup\.gz\.age$/,
      target_database: 'shop'
    })
    t.equal(s3.objects.get(backup.remote_key as string)?.length, backup.size_bytes)
    t.ok((await admin.get(`${path}/backup-configs`)).body[0].last_run_at)
    t.match(await admin.delete(`/api/projects/${project}/backup-destinations/${destination}`), {
      status: 409,
      body: { code: 'E_BACKUP_DESTINATION_IN_USE' }
    })
    for (const change of [{ bucket: 'x' }, { provider: 'other' }, { endpoint: 's3.example.com' }])
      t.match(
        await admin.put(`/api/projects/${project}/backup-destinations/${destination}`, {
          ...change,
          ...s3Keys
        }),
        { status: 409, body: { code: 'E_BACKUP_DESTINATION_LOCKED' } },
        JSON.stringify(change)
      )
    t.equal((await admin.delete(one)).status, 200)
    t.match(await backupsOf(path), [{ id: backup.id, config_id: null }])
  })

  await t.test(
    'two of one second have files of their own, also where two destinations are one place',
    async t => {
      const id = await createDatabase(opened, 'Twice', lines(10))
      const path = pathOf(project, id)
      const same = await admin.post(`/api/projects/${project}/backup-destinations`, {
        name: 'The same store',
        provider: 'other',
        endpoint: s3.host,
        bucket: s3Bucket,
        prefix: 'all',
        use_ssl: false,
        ...s3Keys
      })
      // The clock stands still meanwhile.
      for (const destination_id of [destination, same.body.id, destination]) {
        const { body } = await admin.post(`${path}/backup-configs`, { ...config, destination_id })
        t.equal((await admin.post(`${path}/backup-configs/${body.id}/run`)).status, 202)
        await until(async () => {
          const all = (await backupsOf(path)) as Array<{ status: string }>
          return all.every(({ status }) => status === 'succeeded')
        }, 'the backup to be made')
      }
      const made = (await backupsOf(path)) as Array<{ remote_key: string; size_bytes: number }>
      t.equal(new Set(made.map(one => one.remote_key)).size, 3)
      for (const { remote_key: key, size_bytes: bytes } of made) t.equal(s3.objects.get(key)?.length, bytes)
    }
  )

  await t.test('what is wrong with one is told with its field', async t => {
    const path = pathOf(project, await createDatabase(opened, 'Wrong', lines(1)))
    for (const [body, code] of [
      [{ ...config, schedule: '0 3 * *' }, 'E_BACKUP_SCHEDULE_FIELDS'],
      [{ ...config, schedule: '0 0 3 * * *' }, 'E_BACKUP_SCHEDULE_FIELDS'],
      [{ ...config, schedule: '0 99 * * *' }, 'E_SCHEDULE_CRON'],
      [{ ...config, schedule: '0 0 30 2 *' }, 'E_BACKUP_SCHEDULE_NEVER'],
      [{ ...config, drill_schedule: '0 0 31 4 *' }, 'E_BACKUP_SCHEDULE_NEVER'],
      [{ ...config, time_zone: 'Atlantis' }, 'E_SCHEDULE_TIME_ZONE'],
      [{ ...config, drill_schedule: 'weekly' }, 'E_BACKUP_SCHEDULE_FIELDS'],
      [{ ...config, destination_id: 'x' }, 'E_BACKUP_DESTINATION_UNKNOWN'],
      [{ ...config, destination_id: project }, 'E_BACKUP_DESTINATION_UNKNOWN'],
      [{ schedule: '0 3 * * *' }, 'E_BACKUP_DESTINATION_UNKNOWN'],
      [{ ...config, prefix: '../..' }, 'E_BACKUP_PREFIX'],
      [{ ...config, databases: ['nothing'] }, 'E_BACKUP_DATABASES']
    ] as const)
      t.match(await admin.post(`${path}/backup-configs`, body), { status: 400, body: { code } }, code)
    t.equal((await admin.post(`${path}/backup-configs`, { ...config, keep_latest: 0 })).status, 400)
    probe.choiceRefusal = 'a server of files has no databases'
    const chosen = { status: 400, body: { code: 'E_BACKUP_DATABASES_CHOICE', field: 'databases' } }
    t.match(await admin.post(`${path}/backup-configs`, { ...config, databases: ['shop'] }), {
      ...chosen,
      body: { ...chosen.body, error: /^databases: a server of files has no databases; leave it out/ }
    })
    const whole = await admin.post(`${path}/backup-configs`, { ...config, databases: [] })
    t.match(whole, { status: 201 })
    const one = `${path}/backup-configs/${whole.body.id}`
    t.match(await admin.put(one, { databases: ['shop'] }), chosen)
    t.match(await admin.put(one, { keep_latest: 2 }), { status: 200, body: { databases: [] } })
    t.equal((await admin.delete(one)).status, 200)
    probe.choiceRefusal = null
    t.same((await admin.get(`${path}/backup-configs`)).body, [])
  })

  await t.test('it is due by its time zone, keeps so many, and is proven by a drill', async t => {
    const id = await createDatabase(opened, 'Due', lines(50))
    const path = pathOf(project, id)
    // Three o'clock in Berlin is two by UTC.
    const made = await admin.post(`${path}/backup-configs`, {
      ...config,
      time_zone: 'Europe/Berlin',
      keep_latest: 1,
      drill_schedule: '30 4 * * *'
    })
    t.equal(made.body.next_run_at, '2026-11-29T02:00:00.000Z')
    await later(hour / 2)
    t.match(await ended(admin, `${path}/backups`), { status: 'succeeded', config_id: made.body.id })
    const [first] = await backupsOf(path)
    await later(2 * hour)
    await until(async () => (await backupsOf(path))[0].proof.status === 'proven', 'the drill to prove it')
    t.match((await backupsOf(path))[0].proof, { rows: 50, error: null })
    await later(22 * hour)
    await until(async () => {
      const [newest] = await backupsOf(path)
      return newest.id !== first.id && newest.status === 'succeeded'
    }, 'the next one to be made')
    await until(async () => (await backupsOf(path)).length === 1, 'the one before to go')
    await until(() => !s3.objects.has(first.remote_key), 'its file to go')
    t.equal((await admin.delete(`${path}/backup-configs/${made.body.id}`)).status, 200)
  })

  await t.test('one that cannot be made at its time has failed, and its project is told', async t => {
    const id = await createDatabase(opened, 'Asleep', lines(5))
    const path = pathOf(project, id)
    await admin.post(`${path}/backup-configs`, { ...config, schedule: '0 * * * *' })
    probe.backupRefusal = 'the database is stopped: start it'
    await later(hour)
    t.match(await ended(admin, `${path}/backups`), {
      status: 'failed',
      error: 'the database is stopped: start it'
    })
    probe.backupRefusal = null
    const isOfIt = ({ title }: { title: string }): boolean => title.includes('Asleep')
    t.match((await untilTold(admin, isOfIt)).find(isOfIt), {
      type: 'database.backup_failed',
      body: 'the database is stopped: start it'
    })
    const [{ id: configId }] = (await admin.get(`${path}/backup-configs`)).body
    t.match((await admin.put(`${path}/backup-configs/${configId}`, { enabled: false })).body, {
      enabled: false,
      next_run_at: null
    })
  })

  await t.test('what is due while one is still being made is left out, and the next time comes', async t => {
    const path = pathOf(project, await createDatabase(opened, 'Slow', lines(5)))
    const made = await admin.post(`${path}/backup-configs`, { ...config, schedule: '0 * * * *' })
    let release = (): void => {}
    probe.hold = new Promise(resolve => {
      release = resolve
    })
    t.teardown(() => release())
    const lastRun = async () => (await admin.get(`${path}/backup-configs`)).body[0].last_run_at
    await later(hour)
    await until(async () => (await backupsOf(path)).length === 1, 'the first one to begin')
    const first = await lastRun()
    const [{ next_run_at: second }] = (await admin.get(`${path}/backup-configs`)).body
    await later(hour)
    await until(async () => {
      const [{ next_run_at: next }] = (await admin.get(`${path}/backup-configs`)).body
      const waiting = await k.query("select from graphile_worker.jobs where task_identifier = 'backups:due'")
      return next !== second && waiting.length === 0
    }, 'the second one to have been due')
    t.match(await backupsOf(path), [{ status: 'running' }])
    t.equal(await lastRun(), first, 'it did not run')
    probe.hold = null
    release()
    t.match(await ended(admin, `${path}/backups`), { status: 'succeeded' })
    await later(hour)
    await until(async () => (await backupsOf(path)).length === 2, 'the third one to be made')
    t.match(await ended(admin, `${path}/backups`), { status: 'succeeded' })
    t.equal((await admin.delete(`${path}/backup-configs/${made.body.id}`)).status, 200)
  })

  await t.test('what was missed is made up for once', async t => {
    const path = pathOf(project, await createDatabase(opened, 'Missed', lines(5)))
    const made = await admin.post(`${path}/backup-configs`, {
      ...config,
      schedule: '0 * * * *',
      drill_schedule: ''
    })
    await later(5 * hour)
    t.match(await ended(admin, `${path}/backups`), { status: 'succeeded', config_id: made.body.id })
    await clock.advance(31_000)
    t.equal((await backupsOf(path)).length, 1, 'one for five')
    const { last_run_at: last, next_run_at: next } = (await admin.get(`${path}/backup-configs`)).body[0]
    t.ok(Date.parse(next) > clock.now().getTime())
    t.ok(Date.parse(next) - Date.parse(last) <= hour)
    t.equal((await admin.delete(`${path}/backup-configs/${made.body.id}`)).status, 200)
  })

  await t.test(
    'volumes have schedules of their own, with and without their application standing still',
    async t => {
      const { id, application } = await createVolume(opened, 'uploads', lines(30))
      const app = `/api/projects/${project}/applications/${application}`
      const path = `${app}/volumes/${id}`
      const made = await admin.post(`${path}/backup-configs`, { ...config, quiesce: true })
      t.match(made, { status: 201, body: { application_volume_id: id, quiesce: true, enabled: true } })
      t.match((await admin.get(`${app}/volume-backup-configs`)).body, [
        { id: made.body.id, volume_name: 'uploads', mount_path: '/data' }
      ])
      t.match((await admin.get(`${path}/backup-configs`)).body, [{ id: made.body.id }])
      t.equal((await admin.post(`${path}/backup-configs/${made.body.id}/run`)).status, 202)
      const backup = await ended(admin, `${path}/backups`)
      t.match(backup, { status: 'succeeded', has_remote: true, config_id: made.body.id })
      t.ok(probe.calls.includes(`dump ${id} quiesced`))
      t.ok([...s3.objects.keys()].some(key => /^all\/uploads-\d{8}T\d{6}Z\.tar\.gz\.age$/.test(key)))
      t.equal((await admin.post(`${path}/backups/${backup.id}/restore`, {})).status, 202)
      t.match(await ended(admin, `${path}/restores`), { status: 'succeeded', backup_id: backup.id })
      const listed = (await admin.get(`/api/projects/${project}/backups`)).body
      t.ok(
        listed.some(
          (one: { kind: string; app_name: string }) => one.kind === 'volume' && one.app_name === 'Web'
        )
      )
      t.equal((await admin.delete(`${path}/backup-configs/${made.body.id}`)).status, 200)
      t.match(await backupsOf(path), [{ id: backup.id, config_id: '' }])
      const other = await createVolume(opened, 'other', 'before\n')
      t.equal((await admin.get(`${app}/volumes/${other.id}/backups`)).status, 404, 'of another application')
      const into = await admin.post(`${path}/backups/${backup.id}/restore`, { target_volume_id: other.id })
      t.equal(into.status, 202)
      const target = `/api/projects/${project}/applications/${other.application}/volumes/${other.id}`
      t.match(await ended(admin, `${target}/restores`), { status: 'succeeded' })

      const own = await admin.post(`${path}/backup-configs`, config)
      // Of what began at one time, any may be the newest.
      const run = async () => {
        await clock.advance(1_000)
        t.equal((await admin.post(`${path}/backup-configs/${own.body.id}/run`)).status, 202)
        return await ended(admin, `${path}/backups`)
      }
      probe.endError = 'the archive of the volume is not whole'
      t.match(await run(), { status: 'failed' })
      probe.endError = null
      probe.restoreError = 'the volume has what it had'
      await clock.advance(1_000)
      t.equal((await admin.post(`${path}/backups/${backup.id}/restore`, {})).status, 202)
      t.match(await ended(admin, `${path}/restores`), { status: 'failed' })
      probe.restoreError = null
      const link = `/projects/${project}/applications/${application}`
      for (const type of ['volume_backup_failed', 'volume_restored', 'volume_restore_failed'])
        await untilTold(admin, one => one.type === `application.${type}` && one.link === link)
    }
  )
  await k.stop()
})
