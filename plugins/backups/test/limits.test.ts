import { test } from 'tap'
import { s3Keys } from '../../../lab/s3-server.js'
import { backUp, createDatabase, createVolume, ended, lines, openPlatform, pathOf, untilTold } from './kit.js'

test('limits, and what is refused', { timeout: 240_000 }, async t => {
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const destinations = `/api/projects/${project}/backup-destinations`
  const destination = async (name: string, more: object = { provider: 'local' }): Promise<string> => {
    const { status, body } = await admin.post(destinations, { name, ...more })
    if (status !== 201) throw new Error(`no destination: ${JSON.stringify(body)}`)
    return body.id as string
  }
  const schedule = '0 3 1 1 *'

  await t.test(
    'a destination that a schedule uses is not deleted, nor is one that holds a backup',
    async t => {
      const id = await destination('Used')
      const path = pathOf(project, await createDatabase(opened, 'Used', lines(1)))
      const { body } = await admin.post(`${path}/backup-configs`, { destination_id: id, schedule })
      t.match(await admin.delete(`${destinations}/${id}`), {
        status: 409,
        body: { code: 'E_BACKUP_DESTINATION_IN_USE', error: /1 schedules and holds 0 backups/ }
      })
      t.equal((await admin.post(`${path}/backup-configs/${body.id}/run`)).status, 202)
      const backup = await ended(admin, `${path}/backups`)
      t.equal((await admin.delete(`${path}/backup-configs/${body.id}`)).status, 200)
      t.match(await admin.delete(`${destinations}/${id}`), {
        status: 409,
        body: { code: 'E_BACKUP_DESTINATION_IN_USE', error: /0 schedules and holds 1 backups/ }
      })
      t.equal((await admin.delete(`${path}/backups/${backup.id}`)).status, 200)
      t.equal((await admin.delete(`${destinations}/${id}`)).status, 200)
    }
  )

  await t.test('the region of a bucket of Amazon is locked while backups are there', async t => {
    const id = await destination('Amazon', {
      provider: 's3',
      bucket: 'shop',
      region: 'eu-central-1',
      ...s3Keys
    })
    const moved = { region: 'eu-west-1', ...s3Keys }
    const path = pathOf(project, await createDatabase(opened, 'Regional', lines(1)))
    const backup = await backUp(admin, path)
    await k.query('update backups.backup set destination_id = $2 where id = $1', [backup.id, id])
    t.match(await admin.put(`${destinations}/${id}`, moved), {
      status: 409,
      body: { code: 'E_BACKUP_DESTINATION_LOCKED', error: /^region cannot be changed/ }
    })
    await k.query('update backups.backup set destination_id = null where id = $1', [backup.id])
    t.match(await admin.put(`${destinations}/${id}`, moved), { status: 200, body: { region: 'eu-west-1' } })
  })

  await t.test('keys that cannot be opened any more are told', async t => {
    const id = await destination('Sealed', { provider: 's3', bucket: 'shop', ...s3Keys })
    await k.query(
      "update backups.destination set secret_key = (select secret_key from backups.destination where name = 'Amazon') where id = $1",
      [id]
    )
    t.match(await admin.post(`${destinations}/${id}/test`), {
      status: 500,
      body: { code: 'E_BACKUP_DESTINATION_UNREADABLE' }
    })
  })

  await t.test('twenty schedules of one database', async t => {
    const id = await destination('Many')
    const path = pathOf(project, await createDatabase(opened, 'Planned', lines(1)))
    const config = { destination_id: id, schedule }
    const first = await admin.post(`${path}/backup-configs`, config)
    for (let number = 1; number < 20; number++)
      t.equal((await admin.post(`${path}/backup-configs`, config)).status, 201)
    t.match(await admin.post(`${path}/backup-configs`, config), {
      status: 409,
      body: { code: 'E_BACKUP_CONFIG_LIMIT' }
    })
    const other = pathOf(project, await createDatabase(opened, 'Other', lines(1)))
    t.equal((await admin.post(`${other}/backup-configs`, config)).status, 201, 'another one has its own')
    const foreign = `${other}/backup-configs/${first.body.id}`
    t.equal((await admin.put(foreign, { enabled: false })).status, 404, 'one of another database')
    t.equal((await admin.post(`${foreign}/run`)).status, 404)
    t.equal((await admin.delete(foreign)).status, 404)
    t.match((await admin.get(`${path}/backup-configs`)).body.at(0), { id: first.body.id, enabled: true })
  })

  await t.test('fifty destinations of one project', async t => {
    await k.query(
      `insert into backups.destination (id, project_id, name, provider, endpoint, region, bucket, prefix, use_ssl, created_at, updated_at)
      select gen_random_uuid(), $1, 'Filler ' || n, 'local', '', '', '', '', true, now(), now()
      from generate_series(1, 50 - (select count(*)::int from backups.destination where project_id = $1)) n`,
      [project]
    )
    t.match(await admin.post(destinations, { name: 'One more', provider: 'local' }), {
      status: 409,
      body: { code: 'E_BACKUP_DESTINATION_LIMIT' }
    })
  })

  await t.test('pages of backups have fifty unless more are asked for, and two hundred at most', async t => {
    const path = pathOf(project, await createDatabase(opened, 'Listed', lines(1)))
    const { id } = await backUp(admin, path)
    await k.query(
      `insert into backups.backup (id, source_id, status, started_at, finished_at, version, databases, quiesce)
      select gen_random_uuid(), source_id, 'failed', started_at, finished_at, version, databases, quiesce
      from backups.backup cross join generate_series(1, 249) where id = $1`,
      [id]
    )
    for (const [query, length] of [
      ['', 50],
      ['?limit=200', 200],
      ['?limit=201', 50]
    ] as const) {
      const { body, headers } = await admin.get(`${path}/backups${query}`)
      t.equal(body.length, length, query)
      t.equal(headers['x-total-count'], '250')
    }
  })

  await t.test('a backup of a volume that does not work is told', async t => {
    const { id, application } = await createVolume(opened, 'proven', lines(5))
    const path = `/api/projects/${project}/applications/${application}/volumes/${id}`
    const [here] = await k.query<{ id: string }>(
      "select id from backups.destination where name = 'Many' and project_id = $1",
      [project]
    )
    const { body } = await admin.post(`${path}/backup-configs`, { destination_id: here?.id, schedule })
    t.equal((await admin.post(`${path}/backup-configs/${body.id}/run`)).status, 202)
    const backup = await ended(admin, `${path}/backups`)
    probe.checkError = 'a file is missing'
    t.equal((await admin.post(`${path}/backups/${backup.id}/check`)).status, 202)
    await untilTold(
      admin,
      one =>
        one.type === 'application.volume_backup_check_failed' &&
        one.body === 'a file is missing' &&
        one.link === `/projects/${project}/applications/${application}`
    )
    probe.checkError = null
  })
})
