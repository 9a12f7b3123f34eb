import { randomUUID } from 'node:crypto'
import { type HappyCall, type HappyCalls, type HappyFixture, until } from 'busbar/sdk/testing'

/** A folder of this machine: no store is needed. */
const local = (fixture: HappyFixture) => ({ name: fixture.unique('store'), provider: 'local' })

const projectOf = ({ ids }: HappyFixture): string => `/api/projects/${ids.projectId ?? ''}`

async function destination(fixture: HappyFixture): Promise<string> {
  const { body } = await fixture.admin.post(`${projectOf(fixture)}/backup-destinations`, local(fixture))
  return body.id as string
}

/** What is about a database or a volume succeeds where the plugins that keep these run and have made one. */
const where = (
  kind: 'database' | 'volume',
  make: (fixture: HappyFixture) => HappyCall | Promise<HappyCall>
) =>
  async function happy(fixture: HappyFixture): Promise<HappyCall> {
    const isThere = fixture.ids[`${kind}Id`] !== undefined && fixture.k.runningPlugins().includes(`${kind}s`)
    if (isThere) return await make(fixture)
    return {
      ids: {
        // There are no applications where their plugin is off.
        applicationId: fixture.ids.applicationId ?? randomUUID(),
        [`${kind}Id`]: randomUUID(),
        configId: randomUUID(),
        backupId: randomUUID()
      },
      expect: 404
    }
  }

/** A database that nothing is done for; its engine. */
async function settled({ k, ids }: HappyFixture): Promise<string> {
  const [row] = await k.query<{ type: string }>(
    "update databases.database set task = null, status = 'stopped' where id = $1 returning type",
    [ids.databaseId]
  )
  return row?.type ?? ''
}

/** Waits until no backup and no restore of the database is under way. */
async function idle(fixture: HappyFixture): Promise<void> {
  await until(
    async () => {
      fixture.k.resetRateLimits()
      const path = pathOf(fixture, 'database')
      const runs = await Promise.all(
        ['backups', 'restores'].map(async list => (await fixture.admin.get(`${path}/${list}`)).body)
      )
      return runs.flat().every(({ status }: { status: string }) => status !== 'running')
    },
    'nothing to be done for the database',
    60_000
  )
  await settled(fixture)
}

const schedule = async (fixture: HappyFixture) => ({
  destination_id: await destination(fixture),
  schedule: '0 3 1 1 *',
  drill_schedule: ''
})

async function config(fixture: HappyFixture, kind: 'database' | 'volume'): Promise<HappyCall> {
  const { body } = await fixture.admin.post(
    `${pathOf(fixture, kind)}/backup-configs`,
    await schedule(fixture)
  )
  return { ids: { configId: body.id as string } }
}

const pathOf = (fixture: HappyFixture, kind: 'database' | 'volume'): string =>
  kind === 'database'
    ? `${projectOf(fixture)}/databases/${fixture.ids.databaseId ?? ''}`
    : `${projectOf(fixture)}/applications/${fixture.ids.applicationId ?? ''}/volumes/${fixture.ids.volumeId ?? ''}`

/** A backup as it is when it has succeeded; its file is gone, which is asked for later than these calls end. */
async function backup(
  fixture: HappyFixture,
  kind: 'database' | 'volume',
  { isGone = false } = {}
): Promise<string> {
  const { k, ids } = fixture
  const id = randomUUID()
  const engine = kind === 'volume' ? 'volume' : isGone ? 'postgres' : await settled(fixture)
  const resource = isGone ? randomUUID() : (ids[`${kind}Id`] ?? randomUUID())
  const [source] = await k.query<{ id: string }>(
    `insert into backups.source (id, project_id, kind, resource_id, name, slug, engine, version, application_id, deleted_at)
    values ($1, $2, $3, $4, 'Happy', 'happy', $5, '15', $6, case when $7 then now() end)
    on conflict (kind, resource_id) do update set engine = excluded.engine returning id`,
    [
      randomUUID(),
      ids.projectId,
      kind,
      resource,
      engine,
      kind === 'volume' ? ids.applicationId : null,
      isGone
    ]
  )
  await k.query(
    `insert into backups.backup (id, source_id, status, started_at, finished_at, key, version, format, databases, quiesce, sha256, raw_bytes, size_bytes)
    values ($1, $2, 'succeeded', now(), now(), 'gone', '15', 'sql', '{}', false, 'none', 1, 1)`,
    [id, source?.id]
  )
  return id
}

const databaseBackup = async (fixture: HappyFixture) => ({
  ids: { backupId: await backup(fixture, 'database') }
})
const volumeBackup = async (fixture: HappyFixture) => ({ ids: { backupId: await backup(fixture, 'volume') } })
const orphanOfVolume = async (fixture: HappyFixture) => ({
  ids: { backupId: await backup(fixture, 'volume', { isGone: true }) }
})
const orphan = async (fixture: HappyFixture) => ({
  ids: { backupId: await backup(fixture, 'database', { isGone: true }) }
})

const project = '/api/projects/{projectId}'
const database = `${project}/databases/{databaseId}`
const volume = `${project}/applications/{applicationId}/volumes/{volumeId}`

export const happyCalls: HappyCalls = {
  [`POST ${project}/backup-destinations`]: fixture => ({ body: local(fixture) }),
  [`POST ${project}/backup-destinations/test`]: fixture => ({ body: local(fixture) }),
  [`PUT ${project}/backup-destinations/{destId}`]: async fixture => ({
    ids: { destId: await destination(fixture) },
    body: local(fixture)
  }),
  [`DELETE ${project}/backup-destinations/{destId}`]: async fixture => ({
    ids: { destId: await destination(fixture) }
  }),
  [`POST ${project}/backup-destinations/{destId}/test`]: async fixture => ({
    ids: { destId: await destination(fixture) }
  }),

  [`GET ${project}/applications/{applicationId}/volume-backup-configs`]: ({ ids }) =>
    ids.applicationId === undefined ? { ids: { applicationId: randomUUID() }, expect: 404 } : {},

  [`GET ${database}/backup-configs`]: where('database', () => ({})),
  [`POST ${database}/backup-configs`]: where('database', async fixture => ({
    body: await schedule(fixture)
  })),
  [`PUT ${database}/backup-configs/{configId}`]: where('database', async fixture => ({
    ...(await config(fixture, 'database')),
    body: { keep_latest: 3 }
  })),
  [`DELETE ${database}/backup-configs/{configId}`]: where(
    'database',
    async fixture => await config(fixture, 'database')
  ),
  [`POST ${database}/backup-configs/{configId}/run`]: where('database', async fixture => {
    const made = await config(fixture, 'database')
    await idle(fixture)
    return made
  }),
  [`GET ${database}/backups`]: where('database', () => ({})),
  [`POST ${database}/backups`]: where('database', async fixture => {
    await idle(fixture)
    return {}
  }),
  [`DELETE ${database}/backups/{backupId}`]: where('database', databaseBackup),
  [`POST ${database}/backups/{backupId}/check`]: where('database', databaseBackup),
  [`POST ${database}/restore`]: where('database', async fixture => {
    await idle(fixture)
    return { body: { backup_id: await backup(fixture, 'database') } }
  }),
  [`GET ${database}/restores`]: where('database', () => ({})),

  [`DELETE ${project}/orphaned-backups/{backupId}`]: orphan,
  // Nothing is known of it that it could be made again from.
  [`POST ${project}/orphaned-backups/{backupId}/restore`]: async fixture => ({
    ...(await orphan(fixture)),
    expect: fixture.k.runningPlugins().includes('databases') ? 409 : 503
  }),

  [`DELETE ${project}/orphaned-volume-backups/{backupId}`]: orphanOfVolume,
  [`POST ${project}/orphaned-volume-backups/{backupId}/restore`]: async fixture => {
    const isThere = fixture.ids.volumeId !== undefined && fixture.k.runningPlugins().includes('volumes')
    return {
      ...(await orphanOfVolume(fixture)),
      body: { target_volume_id: fixture.ids.volumeId ?? randomUUID() },
      // What no deploy has made yet takes none.
      ...(!isThere && { expect: fixture.k.runningPlugins().includes('volumes') ? 404 : 503 })
    }
  },

  [`GET ${volume}/backup-configs`]: where('volume', () => ({})),
  [`POST ${volume}/backup-configs`]: where('volume', async fixture => ({ body: await schedule(fixture) })),
  [`PUT ${volume}/backup-configs/{configId}`]: where('volume', async fixture => ({
    ...(await config(fixture, 'volume')),
    body: { quiesce: true }
  })),
  [`DELETE ${volume}/backup-configs/{configId}`]: where(
    'volume',
    async fixture => await config(fixture, 'volume')
  ),
  // A volume that no deploy has made yet holds nothing.
  [`POST ${volume}/backup-configs/{configId}/run`]: where('volume', async fixture => ({
    ...(await config(fixture, 'volume')),
    expect: 409
  })),
  [`GET ${volume}/backups`]: where('volume', () => ({})),
  [`DELETE ${volume}/backups/{backupId}`]: where('volume', volumeBackup),
  [`POST ${volume}/backups/{backupId}/check`]: where('volume', volumeBackup),
  [`POST ${volume}/backups/{backupId}/restore`]: where('volume', async fixture => ({
    ...(await volumeBackup(fixture)),
    body: {}
  })),
  [`GET ${volume}/restores`]: where('volume', () => ({}))
}
