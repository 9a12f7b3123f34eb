import { randomUUID } from 'node:crypto'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { busbar } from './cli.js'
import { archives, backUp } from './kit.js'

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
    t.match(await backUp(admin), { status: 'succeeded' })
    const [file = ''] = await archives(k)
    await k.stop()
    const options = { directory: k.state.directory, databaseUrl: k.state.database.url }
    const restored = await busbar(['restore', file, '--replace', '--without-snapshot'], options)
    t.equal(restored.code, 0, restored.stderr)
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
