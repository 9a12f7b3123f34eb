import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createTestKernel,
  type TestClient,
  type TestKernel,
  type TestKernelOptions,
  until
} from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { type S3Server, s3Bucket, s3Keys } from '../../../lab/s3-server.js'
import { backupKeeper } from '../api.js'
import { makeProbe, type Probe, probePlugin } from './probe.js'

/** Plugins that declare what the probe does; they are off where it is on. */
const real = ['databases', 'volumes'].filter(id =>
  existsSync(join(import.meta.dirname, '../..', id, 'plugin.json'))
)

export interface Opened {
  readonly k: TestKernel
  readonly admin: TestClient
  readonly probe: Probe
  readonly project: string
}

/** A platform with "databases" of the test's own. */
export async function openPlatform(t: Test, options: TestKernelOptions = {}): Promise<Opened> {
  const probe = await makeProbe(t)
  const first = await createTestKernel({ environment: options.environment ?? {} })
  t.teardown(() => first.close())
  for (const id of real) await first.disable(id, { cascade: true })
  await first.stop()
  const k = await startWith(t, probe, { ...options, state: first.state })
  if (options.clock !== undefined) {
    // A budget that is counted by a clock that stands still is never full again.
    const refill = setInterval(() => k.resetRateLimits(), 200)
    t.teardown(() => clearInterval(refill))
  }
  const admin = await k.as.session()
  return { k, admin, probe, project: await createProject(admin, 'Shop') }
}

/** Another platform on the same data: a restart. */
export async function startWith(t: Test, probe: Probe, options: TestKernelOptions): Promise<TestKernel> {
  const k = await createTestKernel({ ...options, inline: [probePlugin(probe), ...(options.inline ?? [])] })
  t.teardown(() => k.stop())
  return k
}

export async function createProject(admin: TestClient, name: string): Promise<string> {
  const { status, body } = await admin.post('/api/projects', { name, slug: name.toLowerCase() })
  if (status !== 201) throw new Error(`no project: ${status} ${JSON.stringify(body)}`)
  return body.id as string
}

export const lines = (count: number, word = 'row'): string =>
  Array.from({ length: count }, (_, number) => `${word} ${number} ${randomUUID()}\n`).join('')

/** More than two parts of an upload, also when it is compressed. */
export function largeLines(): string {
  const text = randomBytes(36_000_000).toString('base64')
  const made: string[] = []
  for (let at = 0; at < text.length; at += 1000) made.push(text.slice(at, at + 1000))
  return `${made.join('\n')}\n`
}

/** A schedule whose backups are kept in that store; what is returned asks for one now. */
export async function storedIn(
  { admin, project }: Pick<Opened, 'admin' | 'project'>,
  { host }: Pick<S3Server, 'host'>,
  path: string,
  provider = 'minio'
): Promise<() => Promise<void>> {
  const destination = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: `Store ${path.slice(-80)}`,
    provider,
    endpoint: host,
    bucket: s3Bucket,
    use_ssl: false,
    ...s3Keys
  })
  const { body } = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 1 1 *'
  })
  return async () => {
    const { status } = await admin.post(`${path}/backup-configs/${body.id}/run`)
    if (status !== 202) throw new Error(`no backup: ${status}`)
  }
}

/** A "database" with these lines in it; its id. */
export async function createDatabase(
  { k, probe, project }: Pick<Opened, 'k' | 'probe' | 'project'>,
  name: string,
  content: string
): Promise<string> {
  const id = randomUUID()
  await k.query('insert into backup_probe.database (id, project_id, name) values ($1, $2, $3)', [
    id,
    project,
    name
  ])
  await writeContent(probe, id, content)
  return id
}

/** A "volume" of an application. */
export async function createVolume(
  { k, admin, probe, project }: Opened,
  name: string,
  content: string
): Promise<{ readonly id: string; readonly application: string }> {
  const { status, body } = await admin.post(`/api/projects/${project}/applications`, {
    name: `app-${name}`,
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  if (status !== 201) throw new Error(`no application: ${status} ${JSON.stringify(body)}`)
  const id = randomUUID()
  await k.query(
    'insert into backup_probe.volume (id, project_id, name, application_id) values ($1, $2, $3, $4)',
    [id, project, name, body.id]
  )
  await writeContent(probe, id, content)
  return { id, application: body.id as string }
}

/** The next volume of its name in the same application, as the plugin of volumes makes it, or would while backups are off. */
export async function createVolumeAgain(
  { k, probe, project }: Opened,
  { name, application }: { readonly name: string; readonly application: string },
  { isTold = true } = {}
): Promise<string> {
  const id = randomUUID()
  await k.transaction(async tx => {
    await k.query(
      'insert into backup_probe.volume (id, project_id, name, application_id) values ($1, $2, $3, $4)',
      [id, project, name, application],
      tx
    )
    const made = {
      id,
      projectId: project,
      name,
      slug: name,
      engine: 'volume',
      version: '',
      application: { id: application, name: 'Web' },
      mountPath: '/again'
    }
    if (isTold) await k.service(backupKeeper).made('volume', made, tx)
  })
  await writeContent(probe, id, 'of the new one\n')
  return id
}

/** As the plugin of volumes does it, or does it while backups are off. */
export async function removeVolume(
  { k, project }: Pick<Opened, 'k' | 'project'>,
  { id, name }: { readonly id: string; readonly name: string },
  { isTold = true, deleteBackups = false } = {}
): Promise<void> {
  await k.transaction(async tx => {
    await k.query('delete from backup_probe.volume where id = $1', [id], tx)
    const removed = { id, projectId: project, name, slug: name, engine: 'volume', version: '' }
    if (isTold)
      await k.service(backupKeeper).removed('volume', removed, { deleteBackups, blueprint: null }, tx)
  })
}

export const contentOf = async (probe: Probe, id: string): Promise<string> =>
  await readFile(join(probe.directory, id), 'utf8')

export const writeContent = async (probe: Probe, id: string, content: string): Promise<void> => {
  await writeFile(join(probe.directory, id), content)
}

interface Run {
  readonly id: string
  readonly status: 'running' | 'succeeded' | 'failed'
  readonly [field: string]: unknown
}

/** Some have tens of megabytes, on a machine that has other things to do. */
const runMs = 120_000

/** The newest of a list, once it has ended. */
export async function ended(client: TestClient, list: string, ms = runMs): Promise<Run> {
  return await until(
    async () => {
      const { body } = await client.get(list)
      const [run] = body as unknown as Run[]
      return run === undefined || run.status === 'running' ? undefined : run
    },
    `the newest of ${list} to end`,
    ms
  )
}

interface Told {
  readonly type: string
  readonly title: string
  readonly body: string
  readonly link: string
}

/** All that the client is told, newest first, once so many of it are such: a notification comes behind the end of what it tells of. */
export async function untilTold(
  client: TestClient,
  isSuch: (one: Told) => boolean,
  count = 1
): Promise<readonly Told[]> {
  return await until(async () => {
    const told = (await client.get('/api/notifications')).body.items as readonly Told[]
    return told.filter(isSuch).length >= count && told
  }, 'it to be told')
}

export const pathOf = (project: string, database: string): string =>
  `/api/projects/${project}/databases/${database}`

/** Makes a backup by hand and answers how it went. */
export async function backUp(client: TestClient, path: string): Promise<Run> {
  const { status, body } = await client.post(`${path}/backups`)
  if (status !== 202) throw new Error(`no backup: ${status} ${JSON.stringify(body)}`)
  return await ended(client, `${path}/backups`)
}

/** Restores a backup and answers how it went. */
export async function restore(client: TestClient, path: string, body: object): Promise<Run> {
  const answer = await client.post(`${path}/restore`, body)
  if (answer.status !== 202) throw new Error(`no restore: ${answer.status} ${JSON.stringify(answer.body)}`)
  return await ended(client, `${path}/restores`)
}

/** Files on this machine, of all projects. */
export async function filesOf({ state }: Pick<TestKernel, 'state'>): Promise<string[]> {
  const root = join(state.directory, 'backups', 'databases')
  const found = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
  return found
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
}

/** How many statements of this database wait for a lock. */
export const lockWaits = async ({ query }: Pick<TestKernel, 'query'>): Promise<number> =>
  (
    await query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and state = 'active'"
    )
  ).length

/** As the plugin of databases does it. */
export async function removeDatabase(
  { k, project }: Pick<Opened, 'k' | 'project'>,
  id: string,
  deleteBackups = false
): Promise<void> {
  const [row] = await k.query<{ name: string }>('select name from backup_probe.database where id = $1', [id])
  const name = row?.name ?? ''
  await k.transaction(async tx => {
    await k.query('delete from backup_probe.database where id = $1', [id], tx)
    await k
      .service(backupKeeper)
      .removed(
        'database',
        { id, projectId: project, name, slug: name.toLowerCase(), engine: 'postgres', version: '15' },
        { deleteBackups, blueprint: `credentials of ${id}` },
        tx
      )
  })
}
