import { randomUUID } from 'node:crypto'
import { createTestKernel, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import pg from 'pg'
import { type Test, test } from 'tap'
import { busbar } from './cli.js'
import { archives, backUp } from './kit.js'

/** What the platform says that replaces itself by an archive of what it is now; it does not run afterwards. */
async function replaced(t: Test, k: TestKernel, admin: TestClient) {
  t.match(await backUp(admin), { status: 'succeeded' })
  const [file = ''] = await archives(k)
  await k.stop()
  const options = { directory: k.state.directory, databaseUrl: k.state.database.url }
  const restored = await busbar(['restore', file, '--replace', '--without-snapshot'], options)
  t.equal(restored.code, 0, restored.stderr)
  return restored
}

/** With one project, in which nothing is worked at. */
async function opened(t: Test) {
  const k = await createTestKernel({})
  t.teardown(() => k.close())
  for (const plugin of ['backups', 'databases', 'deployments']) await k.holdJobs(plugin)
  await k.disable('volumes', { cascade: true })
  const admin = await k.as.session()
  const { body: project } = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
  return { k, admin, project: project.id as string }
}

/** Of a database that no platform has open. */
async function rowsOf<Row>(t: Test, url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return (await client.query(text)).rows as Row[]
}

test(
  'a restore of a database that waited when the archive was made does not go on, and is named',
  { timeout: 280_000 },
  async t => {
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    const admin = await k.as.session()
    const { body: project } = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
    const restores: Record<string, string> = {}
    for (const [name, begunAt, restoredAt] of [
      ['Waiting', null, null],
      ['Begun', new Date(), null],
      ['Serving', new Date(), new Date()]
    ] as const) {
      const [source, restore] = [randomUUID(), randomUUID()]
      await k.query(
        `insert into backups.source (id, project_id, kind, resource_id, name, slug, engine, version)
        values ($1, $2, 'database', $3, $4, $5, 'postgres', '17')`,
        [source, project.id, randomUUID(), name, name.toLowerCase()]
      )
      await k.query(
        `insert into backups.restore (id, source_id, backup_id, status, started_at, begun_at, restored_at)
        values ($1, $2, $3, 'running', now(), $4, $5)`,
        [restore, source, randomUUID(), begunAt, restoredAt]
      )
      restores[name] = restore
    }
    const restored = await replaced(t, k, admin)
    for (const name of ['Waiting', 'Begun'])
      t.match(restored.stdout, `a restore of the database ${name} was not over when the archive was made`)
    t.notMatch(restored.stdout, 'Serving')
    const next = await createTestKernel({ state: k.state })
    t.teardown(() => next.stop())
    const rows = await next.query<{ id: string; status: string; error: string | null; ended: boolean }>(
      'select id, status, error, finished_at is not null as ended from backups.restore'
    )
    for (const name of ['Waiting', 'Begun'])
      t.match(
        rows.find(({ id }) => id === restores[name]),
        { status: 'failed', ended: true, error: /^the platform was restored from an archive/ },
        name
      )
    t.not(
      rows.find(({ id }) => id === restores.Serving)?.status,
      'failed',
      'what serves already is only ended as usual'
    )
  }
)

test(
  'work on databases that was under way when the archive was made does not go on: it would be at what there is today',
  { timeout: 280_000 },
  async t => {
    const { k, admin, project } = await opened(t)
    for (const [name, task, more] of [
      ['Made', 'provision', {}],
      ['Reloaded', 'provision', { is_remade: true, status_before: 'running', initialized_at: new Date() }],
      ['Upgraded', 'upgrade', { initialized_at: new Date() }],
      ['Switched', 'upgrade', { initialized_at: new Date() }],
      ['Saved', 'backup', { status_before: 'running', initialized_at: new Date() }],
      ['Filled', 'restore', { former_volume: 'former', initialized_at: new Date() }],
      ['Idle', null, { initialized_at: new Date() }]
    ] as const) {
      const slug = name.toLowerCase()
      const row: Record<string, unknown> = {
        id: randomUUID(),
        project_id: project,
        name,
        slug,
        type: 'postgres',
        version: '15',
        status: task === null ? 'stopped' : 'creating',
        task,
        container_port: 5432,
        backup_mode: 'none',
        credentials: '',
        volume: `${slug}-vol`,
        created_at: new Date(),
        updated_at: new Date(),
        ...more
      }
      const columns = Object.keys(row)
      await k.query(
        `insert into databases.database (${columns.join()}) values (${columns.map((_, at) => `$${at + 1}`).join()})`,
        Object.values(row)
      )
      if (task === 'upgrade')
        await k.query(
          `insert into databases.upgrade (id, database_id, phase, from_version, to_version, former_volume, begun_at, started_at)
          values (('11111111-0000-4000-8000-00000000000' || $2::text)::uuid, $1, $3, '15', '17', 'v', now(), now())`,
          [row.id, name === 'Switched' ? 1 : 2, name === 'Switched' ? 'switched' : 'running']
        )
    }
    const restored = await replaced(t, k, admin)
    for (const name of ['Made', 'Reloaded', 'Upgraded', 'Switched'])
      t.match(restored.stdout, new RegExp(`the database ${name} .*not over when the archive was made`), name)
    t.notMatch(restored.stdout, /Idle/)
    const { url } = k.state.database
    const databases = await rowsOf<{ name: string }>(
      t,
      url,
      `select name, status, task, status_before, status_detail, former_volume, is_remade,
        initialized_at is not null as "mayHaveData" from databases.database`
    )
    const nothing = {
      task: null,
      status_before: null,
      former_volume: null,
      is_remade: false,
      mayHaveData: true
    }
    for (const [name, expected] of Object.entries({
      Made: { status: 'failed', status_detail: /restored from an archive.*being made.*reload it/ },
      Reloaded: { status: 'failed', status_detail: /restored from an archive/ },
      Upgraded: { status: 'failed', status_detail: /restored from an archive.*upgrade/ },
      Switched: { status: 'failed', status_detail: /restored from an archive.*upgrade/ },
      Saved: { status: 'running', status_detail: null },
      Filled: { status: 'failed', status_detail: /restored from an archive.*restore/ },
      Idle: { status: 'stopped', status_detail: null }
    }))
      t.match(
        databases.find(one => one.name === name),
        { ...nothing, ...expected },
        name
      )
    const upgrades = await rowsOf(
      t,
      url,
      'select phase, error, finished_at, kept_until, kept_volume from databases.upgrade order by kept_volume'
    )
    for (const [at, kept] of ['upgraded-vol-11111111', 'v'].entries())
      t.match(
        upgrades[at],
        {
          phase: 'failed',
          error: new RegExp(`restored from an archive.*its data is in the volume ${kept}$`),
          finished_at: Date,
          kept_until: Date,
          kept_volume: kept
        },
        'nothing removes it as long as it may be all that there is'
      )
    t.equal(upgrades.length, 2)
  }
)

test(
  'of other work that was under way what could replace or remove something of today does not go on',
  { timeout: 280_000 },
  async t => {
    const { k, admin, project } = await opened(t)
    const applications: string[] = []
    for (const name of ['web', 'worker']) {
      const { body, status } = await admin.post(`/api/projects/${project}/applications`, {
        name,
        type: 'image',
        build_type: 'image',
        source_image: 'busybox:lab',
        container_port: 8080
      })
      t.equal(status, 201)
      applications.push(body.id)
    }
    for (const [at, status] of ['pending', 'building'].entries())
      await k.query(
        `insert into deployments.deployment (id, project_id, application_id, kind, status, triggered_by, started_at, seen_at)
        values ($1, $2, $3, 'deploy', $4, 'user', now(), now())`,
        [randomUUID(), project, applications[at], status]
      )
    for (const id of applications)
      await k.query(`insert into deployments.follow_up values ($1, 'webhook', now())`, [id])
    for (const [name, begunAt, hasFile] of [
      ['Waiting', null, false],
      ['Begun', new Date(), true],
      ['Again', null, true]
    ] as const) {
      const source = randomUUID()
      await k.query(
        `insert into backups.source (id, project_id, kind, resource_id, name, slug, engine, version)
        values ($1, $2, 'database', $3, $4, $5, 'postgres', '17')`,
        [source, project, randomUUID(), name, name.toLowerCase()]
      )
      await k.query(
        `insert into backups.backup (id, source_id, status, started_at, begun_at, key, has_file, version, databases, quiesce)
        values ($1, $2, 'running', now(), $3, $4, $5, '17', '{}', false)`,
        [randomUUID(), source, begunAt, hasFile ? `${name}.age` : null, hasFile]
      )
    }
    const engineName = `busbar-vol-${applications[0]?.slice(0, 8)}-data`
    for (const name of [engineName, 'busbar-spare-1'])
      await k.query('insert into volumes.engine_volume values ($1, $2, now())', [name, applications[0]])
    const { stdout } = await replaced(t, k, admin)
    t.match(stdout, /a deploy of the application web .*not over when the archive was made/)
    t.match(stdout, /a backup of the database Begun .*not over when the archive was made.*Begun\.age/)
    t.notMatch(stdout, /Waiting/)
    t.match(stdout, /the files of the deleted volume data of the application web are kept/)
    const { url } = k.state.database
    t.match(
      await rowsOf(
        t,
        url,
        'select status, error_message, remedy, finished_at from deployments.deployment order by status'
      ),
      [
        { status: 'building' },
        {
          status: 'failed',
          error_message: /restored from an archive/,
          remedy: /deploy again/,
          finished_at: Date
        }
      ],
      'one that was begun is ended by the platform that starts, as after a crash'
    )
    t.same(await rowsOf(t, url, 'select from deployments.follow_up'), [])
    t.match(
      await rowsOf(
        t,
        url,
        `select s.name, b.status, b.has_file as file, b.error from backups.backup b
        join backups.source s on s.id = b.source_id order by s.name`
      ),
      [
        { name: 'Again', status: 'failed', file: false, error: /restored from an archive/ },
        { name: 'Begun', status: 'failed', file: false, error: /restored from an archive/ },
        { name: 'Waiting', status: 'running', file: false, error: null }
      ],
      'a file that was finished since is not removed'
    )
    t.match(
      await rowsOf(t, url, 'select name, discarded_at as gone from volumes.engine_volume order by name'),
      [
        { name: 'busbar-spare-1', gone: Date },
        { name: engineName, gone: null }
      ]
    )
  }
)
