import { readFile, stat, writeFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { decryptBytes } from '../../../sdk/age/index.js'
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
  restore,
  untilTold,
  writeContent
} from './kit.js'

test('backups of a database by hand', { timeout: 200_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const recovery = (await admin.post('/api/backups/recovery-key', {})).body.recovery_key as string

  await t.test('one is kept on this machine, encrypted, and opened by the recovery key alone', async t => {
    const content = lines(5_000)
    const id = await createDatabase(opened, 'Orders', content)
    const path = pathOf(project, id)
    const backup = await backUp(admin, path)
    t.match(backup, {
      status: 'succeeded',
      error: '',
      has_remote: false,
      remote_key: '',
      config_id: null,
      target_database: '',
      encrypted: true,
      format: 'lines',
      proof: { status: 'unproven', checked_at: null, rows: null }
    })
    for (const line of (backup.log as string).trim().split('\n'))
      t.match(JSON.parse(line), { time: String, message: String }, 'its log is one JSON object a line')
    const file = (await filesOf(k)).find(name => name.includes('orders-')) ?? ''
    t.match(file, /\/orders-\d{8}T\d{6}Z\.backup\.gz\.age$/)
    t.equal((await stat(file)).size, backup.size_bytes)
    t.equal((await stat(file)).mode & 0o777, 0o600)
    const stored = await readFile(file)
    t.notOk(stored.includes('row 1'), 'nothing is in clear')
    t.equal(gunzipSync(await decryptBytes(recovery, stored)).toString(), content)
    t.same(
      probe.calls.filter(call => call.endsWith(id)),
      [`dump ${id}`, `settle backup ${id}`]
    )
    const [listed] = (await admin.get(`/api/projects/${project}/backups`)).body
    t.match(listed, { kind: 'database', resource_id: id, resource_name: 'Orders', app_name: null })
  })

  await t.test('it is restored to the same database and, where that is meant, to another', async t => {
    const content = lines(2_000)
    const id = await createDatabase(opened, 'Origin', content)
    const other = await createDatabase(opened, 'Other', 'before\n')
    const backup = await backUp(admin, pathOf(project, id))
    await writeContent(probe, id, 'lost\n')
    t.match(await restore(admin, pathOf(project, id), { backup_id: backup.id }), {
      status: 'succeeded',
      backup_id: backup.id,
      error: ''
    })
    t.equal(await contentOf(probe, id), content)
    const refused = await admin.post(`${pathOf(project, other)}/restore`, { backup_id: backup.id })
    t.match(refused, { status: 400, body: { code: 'E_RESTORE_OTHER', field: 'backup_id' } })
    t.equal(await contentOf(probe, other), 'before\n')
    await restore(admin, pathOf(project, other), { backup_id: backup.id, from_other: true })
    t.equal(await contentOf(probe, other), content)
    await untilTold(admin, ({ type }) => type === 'database.restored')
  })

  await t.test('a changed bit or a missing end is refused before anything is touched', async t => {
    const content = lines(3_000)
    const id = await createDatabase(opened, 'Damaged', content)
    const path = pathOf(project, id)
    const backup = await backUp(admin, path)
    const file = (await filesOf(k)).find(name => name.includes('damaged-')) ?? ''
    const good = await readFile(file)
    await writeContent(probe, id, 'as it is now\n')
    const changed = Buffer.from(good)
    changed.writeUInt8(changed.readUInt8(good.length >> 1) ^ 1, good.length >> 1)
    for (const [bad, words] of [
      [changed, /is damaged: its checksum/],
      [good.subarray(0, good.length - 1), /is damaged: it is \d+ bytes long/]
    ] as const) {
      await writeFile(file, bad)
      t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'failed', error: words })
      t.equal(await contentOf(probe, id), 'as it is now\n')
      t.notOk(probe.calls.includes(`restore ${id}`), 'the source was not asked')
    }
    // Read once, into something beside what is there, it is found on the way.
    probe.beside = true
    const head = Buffer.from(good)
    head.writeUInt8(head.readUInt8(10) ^ 1, 10)
    for (const bad of [changed, head, good.subarray(0, good.length - 1)]) {
      await writeFile(file, bad)
      t.match(await restore(admin, path, { backup_id: backup.id }), {
        status: 'failed',
        error: /is damaged/
      })
      t.equal(await contentOf(probe, id), 'as it is now\n')
    }
    await writeFile(file, good)
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded' })
    t.equal(await contentOf(probe, id), content)
    probe.beside = false
    await writeContent(probe, id, 'as it is now\n')
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded', log: /it is whole/ })
    t.equal(await contentOf(probe, id), content)
  })

  await t.test(
    'a second one at a time is refused, a second restore too, and deleting what is used',
    async t => {
      const id = await createDatabase(opened, 'Busy', lines(100))
      const path = pathOf(project, id)
      const backup = await backUp(admin, path)
      let release = (): void => {}
      probe.hold = new Promise(resolve => {
        release = resolve
      })
      t.equal((await admin.post(`${path}/backups`)).status, 202)
      t.match(await admin.post(`${path}/backups`), {
        status: 409,
        body: { error: 'a backup is already in progress' }
      })
      t.match(await admin.post(`${path}/restore`, { backup_id: backup.id }), {
        status: 409,
        body: { code: 'E_BACKUP_BUSY' }
      })
      const [running] = (await admin.get(`${path}/backups`)).body
      t.match(await admin.delete(`${path}/backups/${running.id}`), {
        status: 409,
        body: { code: 'E_BACKUP_IN_USE' }
      })
      release()
      probe.hold = null
      t.match(await ended(admin, `${path}/backups`), { status: 'succeeded' })

      probe.holdRestore = new Promise(resolve => {
        release = resolve
      })
      t.equal((await admin.post(`${path}/restore`, { backup_id: backup.id })).status, 202)
      t.match(await admin.post(`${path}/restore`, { backup_id: backup.id }), {
        status: 409,
        body: { error: 'a restore is already in progress' }
      })
      t.match(await admin.post(`${path}/backups`), { status: 409, body: { code: 'E_RESTORE_BUSY' } })
      t.match(await admin.delete(`${path}/backups/${backup.id}`), {
        status: 409,
        body: { code: 'E_BACKUP_IN_USE' }
      })
      release()
      probe.holdRestore = null
      t.match(await ended(admin, `${path}/restores`), { status: 'succeeded' })

      probe.holdCheck = new Promise(resolve => {
        release = resolve
      })
      const check = `${path}/backups/${backup.id}/check`
      t.equal((await admin.post(check)).status, 202)
      t.match(await admin.post(check), { status: 409, body: { code: 'E_BACKUP_IN_USE' } })
      t.match(await admin.delete(`${path}/backups/${backup.id}`), {
        status: 409,
        body: { code: 'E_BACKUP_IN_USE' }
      })
      release()
      probe.holdCheck = null
      const proofOf = async () =>
        (await admin.get(`${path}/backups`)).body.find((one: { id: string }) => one.id === backup.id).proof
      await until(async () => (await proofOf()).status === 'proven', 'the drill to end')
      const before = (await filesOf(k)).filter(name => name.includes('busy-')).length
      t.match(await admin.delete(`${path}/backups/${backup.id}`), {
        status: 200,
        body: { status: 'deleted' }
      })
      t.notOk((await admin.get(`${path}/backups`)).body.some((one: { id: string }) => one.id === backup.id))
      await until(
        async () => (await filesOf(k)).filter(name => name.includes('busy-')).length === before - 1,
        'its file to be gone'
      )
    }
  )

  await t.test('a source that refuses says why, and a backup of another engine is not restored', async t => {
    const id = await createDatabase(opened, 'Stopped', lines(10))
    const path = pathOf(project, id)
    const backup = await backUp(admin, path)
    probe.backupRefusal = 'the database is stopped: start it'
    t.match(await admin.post(`${path}/backups`), {
      status: 409,
      body: { error: 'the database is stopped: start it' }
    })
    probe.backupRefusal = null
    probe.restoreRefusal = 'the database is being upgraded'
    t.match(await admin.post(`${path}/restore`, { backup_id: backup.id }), {
      status: 409,
      body: { error: 'the database is being upgraded' }
    })
    probe.restoreRefusal = null
    probe.engine = 'mysql'
    const other = await createDatabase(opened, 'Mysql', lines(10))
    await backUp(admin, pathOf(project, other))
    const [ofMysql] = (await admin.get(`${pathOf(project, other)}/backups`)).body
    probe.engine = 'postgres'
    t.match(await admin.post(`${path}/restore`, { backup_id: ofMysql.id, from_other: true }), {
      status: 400,
      body: { code: 'E_RESTORE_ENGINE' }
    })
    for (const unknown of ['nonsense', project])
      t.match(await admin.post(`${path}/restore`, { backup_id: unknown }), {
        status: 400,
        body: { code: 'E_RESTORE_BACKUP' }
      })
  })

  await t.test('a restore that fails says why, in the words of who restores', async t => {
    const id = await createDatabase(opened, 'Failing', lines(50_000))
    const path = pathOf(project, id)
    const backup = await backUp(admin, path)
    probe.restoreError = 'psql ended with 3: out of shared memory; the database has what it had'
    t.match(await restore(admin, path, { backup_id: backup.id }), {
      status: 'failed',
      error: 'psql ended with 3: out of shared memory; the database has what it had'
    })
    probe.restoreError = null
    t.ok(probe.calls.includes(`settle restore ${id}`))
    await untilTold(admin, ({ type }) => type === 'database.restore_failed')
  })

  await t.test('so many as the installation keeps are kept', async () => {
    const id = await createDatabase(opened, 'Kept', lines(10))
    const path = pathOf(project, id)
    for (let made = 0; made < 9; made++) await backUp(admin, path)
    await until(async () => (await admin.get(`${path}/backups`)).body.length === 7, 'the oldest to go')
    await until(
      async () => (await filesOf(k)).filter(name => name.includes('/kept-')).length === 7,
      'their files to go'
    )
  })

  await t.test('a drill restores into a copy and says what it found', async t => {
    const id = await createDatabase(opened, 'Drill', lines(321))
    const path = pathOf(project, id)
    const { id: backupId } = await backUp(admin, path)
    const check = async () => {
      const { status } = await admin.post(`${path}/backups/${backupId}/check`)
      t.equal(status, 202)
      return await until(async () => {
        const [{ proof }] = (await admin.get(`${path}/backups`)).body
        return proof.status === 'running' ? undefined : proof
      }, 'the drill to end')
    }
    const since = Date.now()
    const proof = await check()
    t.match(proof, { status: 'proven', rows: 321, detail: '2 databases', error: null })
    t.ok(Date.parse(proof.checked_at) >= since - 1000, 'when')
    t.type(proof.duration_ms, 'number', 'how long it took')
    probe.checkError = 'relation "orders" does not exist'
    t.match(await check(), { status: 'failed', rows: null, error: 'relation "orders" does not exist' })
    probe.checkError = null
    await k.query('update backups.backup set rows = 400 where id = $1', [backupId])
    t.match(await check(), { status: 'failed', error: 'the copy has 321 rows, and 400 were backed up' })
    await untilTold(admin, ({ type }) => type === 'database.backup_check_failed')
  })

  await t.test('a project has its newest fifty, and the newest of everything it has', async t => {
    const own = { ...opened, project: await createProject(admin, 'Many') }
    const url = `/api/projects/${own.project}/backups`
    const old = await backUp(admin, pathOf(own.project, await createDatabase(own, 'Old', lines(1))))
    const busy = await createDatabase(own, 'Frequent', lines(1))
    const { id } = await backUp(admin, pathOf(own.project, busy))
    await k.query(
      `insert into backups.backup (id, source_id, status, started_at, finished_at, version, databases, quiesce)
      select gen_random_uuid(), source_id, 'failed', started_at + n * interval '1 minute', started_at + n * interval '1 minute', version,
        databases, quiesce
      from backups.backup cross join generate_series(1, 60) n where id = $1`,
      [id]
    )
    const { body, headers } = await admin.get(url)
    t.equal(body.length, 51)
    t.equal(headers['x-total-count'], '51')
    t.equal(body.at(-1).id, old.id, 'the one of the other database, which is older than all')
    const times = body.map((one: { started_at: string }) => one.started_at)
    t.same(times, times.toSorted().reverse(), 'the newest first')
    const page = (await admin.get(`${url}?limit=1&offset=50`)).body
    t.match(page, [{ id: old.id }])
  })
})
