import { containerRuntime } from 'busbar/api/containers'
import { logArchive } from 'busbar/api/logs'
import {
  type HappyCall,
  type HappyCalls,
  type HappyFixture,
  type HappyFixtures,
  until
} from 'busbar/sdk/testing'

/** A server of any kind, of an image that every engine of tests has. */
const image = {
  type: 'other',
  image: 'busybox:lab',
  container_port: 80,
  env: {}
}

async function create({ admin, ids, unique }: HappyFixture): Promise<{ databaseId: string }> {
  const { body } = await admin.post(`/api/projects/${ids.projectId ?? ''}/databases`, {
    name: unique('db'),
    ...image
  })
  return { databaseId: body.id as string }
}

/** One that nothing is done for; without an engine, one that has failed. */
async function settled(fixture: HappyFixture): Promise<{ databaseId: string }> {
  const made = await create(fixture)
  await fixture.k.query(
    `update databases.database set task = null, status = 'stopped' where id = '${made.databaseId}'`
  )
  return made
}

/** An action on a container; 503 naming the runtime is the documented answer without one, and 409 without a container. */
async function onContainer(fixture: HappyFixture): Promise<HappyCall> {
  const made = await settled(fixture)
  const { k, ids } = fixture
  if (!k.isProvided(containerRuntime)) return { ids: made, expect: 503 }
  const runtime = k.service(containerRuntime)
  const projectId = ids.projectId ?? ''
  const { body: project } = await fixture.admin.get(`/api/projects/${projectId}`)
  const { body } = await fixture.admin.get(`/api/projects/${projectId}/databases/${made.databaseId}`)
  await until(async () => (await runtime.list({ databaseId: made.databaseId })).length >= 0, 'the engine')
  const container = await runtime.create({
    name: `${body.slug as string}-happy`,
    image: 'busybox:lab',
    owner: { projectId, databaseId: made.databaseId },
    network: await runtime.ensureNetwork({ id: projectId, slug: project.slug as string }),
    env: {},
    command: ['sh', '-c', 'trap "exit 0" TERM INT; sleep 1000 & wait'],
    cpuLimit: 0,
    memoryLimit: 0,
    caps: 'minimal',
    readonlyRootfs: true
  })
  await runtime.start(container)
  await k.query(
    `update databases.database set container_id = '${container}', task = null, status = 'running' where id = '${made.databaseId}'`
  )
  return { ids: made }
}

/** What is asked of the plugin of logs is answered with 503 while that is off. */
const ofLogs = ({ k }: HappyFixture): HappyCall => (k.isProvided(logArchive) ? {} : { expect: 503 })

export const happyFixtures: HappyFixtures = async fixture => await create(fixture)

export const happyCalls: HappyCalls = {
  'GET /api/projects/{projectId}/databases/{databaseId}/volume': ({ k }) =>
    k.isProvided(containerRuntime) ? {} : { expect: 503 },
  'GET /api/projects/{projectId}/databases/{databaseId}/logs/history': ofLogs,
  'GET /api/projects/{projectId}/databases/{databaseId}/logs/sessions': ofLogs,
  'POST /api/projects/{projectId}/databases': ({ unique }) => ({
    body: { name: unique('db'), ...image },
    expect: 202
  }),
  'PUT /api/projects/{projectId}/databases/{databaseId}': async fixture => ({
    ids: await settled(fixture),
    body: { memory_limit: 64 * 1024 * 1024 }
  }),
  'DELETE /api/projects/{projectId}/databases/{databaseId}': async fixture => ({
    ids: await create(fixture)
  }),
  'POST /api/projects/{projectId}/databases/{databaseId}/start': onContainer,
  'POST /api/projects/{projectId}/databases/{databaseId}/stop': onContainer,
  'POST /api/projects/{projectId}/databases/{databaseId}/restart': onContainer,
  'POST /api/projects/{projectId}/databases/{databaseId}/reload': async fixture => ({
    ids: await settled(fixture),
    expect: 202
  }),
  'POST /api/projects/{projectId}/databases/{databaseId}/external-access': async fixture => {
    const made = await settled(fixture)
    await fixture.k.query(`update databases.database set status = 'running' where id = '${made.databaseId}'`)
    return { ids: made, body: { enabled: false }, expect: 202 }
  },
  'POST /api/projects/{projectId}/databases/{databaseId}/upgrade': async fixture => {
    const { admin, ids, unique, k } = fixture
    const { body } = await admin.post(`/api/projects/${ids.projectId ?? ''}/databases`, {
      name: unique('db'),
      type: 'postgres'
    })
    const databaseId = body.id as string
    await k.query(`update databases.database set task = null, status = 'running' where id = '${databaseId}'`)
    return { ids: { databaseId }, body: { target_version: '17' } }
  },
  'POST /api/projects/{projectId}/databases/{databaseId}/upgrades/confirm': async fixture => {
    const made = await settled(fixture)
    if (!fixture.k.isProvided(containerRuntime)) return { ids: made, expect: 404 }
    await fixture.k.query(
      `insert into databases.upgrade (id, database_id, phase, from_version, to_version, former_volume, started_at, kept_until)
      values (gen_random_uuid(), '${made.databaseId}', 'succeeded', '1', '2', 'busbar-no-such-volume', now(), now())`
    )
    return { ids: made }
  },
  'PUT /api/projects/{projectId}/databases/{databaseId}/attachments/{applicationId}': async fixture => ({
    ids: await settled(fixture),
    body: { variables: { DATABASE_HOST: 'host' } }
  }),
  'DELETE /api/projects/{projectId}/databases/{databaseId}/attachments/{applicationId}': async fixture => {
    const made = await settled(fixture)
    const { admin, ids } = fixture
    await admin.put(
      `/api/projects/${ids.projectId ?? ''}/databases/${made.databaseId}/attachments/${ids.applicationId ?? ''}`,
      { variables: { DATABASE_HOST: 'host' } }
    )
    return { ids: made }
  }
}
