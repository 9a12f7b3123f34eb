import { randomUUID } from 'node:crypto'
import type { HappyCall, HappyCalls, HappyFixture } from 'busbar/sdk/testing'

/** A folder of this machine: no store is needed. */
const local = (fixture: HappyFixture) => ({ name: fixture.unique('store'), provider: 'local' })

const projectOf = ({ ids }: HappyFixture): string => `/api/projects/${ids.projectId ?? ''}`

async function destination(fixture: HappyFixture): Promise<string> {
  const { body } = await fixture.admin.post(`${projectOf(fixture)}/backup-destinations`, local(fixture))
  return body.id as string
}

/** What is about a database or a volume succeeds where the plugins that keep these have made one. */
const where = (
  param: 'databaseId' | 'volumeId',
  make: (fixture: HappyFixture) => HappyCall | Promise<HappyCall>
) =>
  async function happy(fixture: HappyFixture): Promise<HappyCall> {
    return fixture.ids[param] === undefined
      ? { ids: { [param]: randomUUID() }, expect: 404 }
      : await make(fixture)
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
  { k, ids }: HappyFixture,
  kind: 'database' | 'volume',
  { isGone = false, engine = 'postgres' } = {}
): Promise<string> {
  const id = randomUUID()
  const resource = isGone ? randomUUID() : (ids[`${kind}Id`] ?? randomUUID())
  const [source] = await k.query<{ id: string }>(
    `insert into backups.source (id, project_id, kind, resource_id, name, slug, engine, version, application_id, deleted_at)
    values ($1, $2, $3, $4, 'Happy', 'happy', $5, '15', $6, case when $7 then now() end)
    on conflict (kind, resource_id) do update set slug = excluded.slug returning id`,
    [
      randomUUID(),
      ids.projectId,
      kind,
      resource,
      kind === 'volume' ? 'volume' : engine,
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

  [`GET ${database}/backup-configs`]: where('databaseId', () => ({})),
  [`POST ${database}/backup-configs`]: where('databaseId', async fixture => ({
    body: await schedule(fixture)
  })),
  [`PUT ${database}/backup-configs/{configId}`]: where('databaseId', async fixture => ({
    ...(await config(fixture, 'database')),
    body: { keep_latest: 3 }
  })),
  [`DELETE ${database}/backup-configs/{configId}`]: where(
    'databaseId',
    async fixture => await config(fixture, 'database')
  ),
  [`POST ${database}/backup-configs/{configId}/run`]: where('databaseId', async fixture => ({
    ...(await config(fixture, 'database')),
    // It waits for a worker, and no other one begins meanwhile.
    expect: 202
  })),
  [`GET ${database}/backups`]: where('databaseId', () => ({})),
  [`POST ${database}/backups`]: where('databaseId', () => ({})),
  [`DELETE ${database}/backups/{backupId}`]: where('databaseId', databaseBackup),
  [`POST ${database}/backups/{backupId}/check`]: where('databaseId', databaseBackup),
  [`POST ${database}/restore`]: where('databaseId', async fixture => ({
    body: { backup_id: await backup(fixture, 'database') }
  })),
  [`GET ${database}/restores`]: where('databaseId', () => ({})),

  [`DELETE ${project}/orphaned-backups/{backupId}`]: orphan,
  // Nothing is known of it that it could be made again from.
  [`POST ${project}/orphaned-backups/{backupId}/restore`]: async fixture => ({
    ...(await orphan(fixture)),
    expect: fixture.ids.databaseId === undefined ? 503 : 409
  }),

  [`GET ${volume}/backup-configs`]: where('volumeId', () => ({})),
  [`POST ${volume}/backup-configs`]: where('volumeId', async fixture => ({ body: await schedule(fixture) })),
  [`PUT ${volume}/backup-configs/{configId}`]: where('volumeId', async fixture => ({
    ...(await config(fixture, 'volume')),
    body: { quiesce: true }
  })),
  [`DELETE ${volume}/backup-configs/{configId}`]: where(
    'volumeId',
    async fixture => await config(fixture, 'volume')
  ),
  [`POST ${volume}/backup-configs/{configId}/run`]: where(
    'volumeId',
    async fixture => await config(fixture, 'volume')
  ),
  [`GET ${volume}/backups`]: where('volumeId', () => ({})),
  [`DELETE ${volume}/backups/{backupId}`]: where('volumeId', volumeBackup),
  [`POST ${volume}/backups/{backupId}/check`]: where('volumeId', volumeBackup),
  [`POST ${volume}/backups/{backupId}/restore`]: where('volumeId', async fixture => ({
    ...(await volumeBackup(fixture)),
    body: {}
  })),
  [`GET ${volume}/restores`]: where('volumeId', () => ({}))
}
