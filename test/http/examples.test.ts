import { randomUUID } from 'node:crypto'
/** Every example in the description of the API is sent as it stands there, to a platform that has what it is about. */
import { identity } from 'busbar/api/identity'
import { createTestKernel, type TestAnswer, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../lab/engine.js'
import { newAdmins } from './new-admin.js'

takeAwayFromEngine()
type Json = Readonly<Record<string, any>>

/** A value that an operation shows, in its body or as a parameter. */
interface Example {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly values?: Readonly<Record<string, string>>
}

/** The one that the examples of sign-ins show. */
const password = 'a sentence that is long'

let k: TestKernel
let api: Json
let made = 0

/** A part of the description, be it written out or a reference. */
function part({ $ref: reference, ...rest }: Json): Json {
  const [kind = '', name = ''] = (reference ?? '').replace('#/components/', '').split('/')
  return { ...api.components[kind]?.[name], ...rest }
}

const shownBy = ({ example, examples }: Json): unknown[] =>
  Array.isArray(examples)
    ? examples
    : [
        ...(example === undefined ? [] : [example]),
        ...Object.values<Json>(examples ?? {}).map(({ value }) => value)
      ]

const examples = (): Example[] =>
  Object.entries<Json>(api.paths).flatMap(([path, operations]) =>
    Object.entries<Json>(operations).flatMap(([method, { requestBody, parameters }]) => {
      const media = requestBody?.content?.['application/json']
      const bodies = media === undefined ? [] : [...shownBy(media), ...shownBy(part(media.schema))]
      const values = (parameters as Json[]).map(part).flatMap(parameter =>
        [...shownBy(parameter), ...shownBy(part(parameter.schema))].map(value => ({
          [`${parameter.in} ${parameter.name}`]: String(value)
        }))
      )
      return [
        ...bodies.map(body => ({ method, path, body })),
        ...values.map(one => ({ method, path, values: one }))
      ]
    })
  )

/** For one request each: examples change passwords, end sessions and set up second factors. */
const newAdmin = newAdmins(() => k, password)

/** Whom the examples speak of: some make her, some need her, some must be the first to name her. */
const needsAda = /\/(members|login)$/

const destination = {
  name: 'Far',
  provider: 's3',
  region: 'eu-central-1',
  bucket: 'far',
  access_key: 'key',
  secret_key: 'secret'
}

/** What the paths need, made anew for one request: the one before may have changed it. */
async function fixture(client: TestClient, path: string): Promise<Readonly<Record<string, string>>> {
  const idOf = ({ status, body }: TestAnswer): string => {
    if (status !== 201 && status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body.id
  }
  // The example of settings is one of the audit log.
  const ada = { email: 'ada@example.com', password, role: 'member' } as const
  const found = await k.query<{ id: string }>('select id from identity."user" where email = $1', [ada.email])
  for (const { id } of found) if (!needsAda.test(path)) await client.delete(`/api/users/${id}`)
  if (found.length === 0 && needsAda.test(path)) await k.service(identity).createUser(ada)
  const ids: Record<string, string> = { pluginId: path.endsWith('/config') ? 'audit-logs' : 'api-reference' }
  if (path.includes('{backupId}')) ids.backupId = randomUUID()
  const configFor = async (backedUp: string): Promise<void> => {
    if (path.includes('{configId}')) {
      const destinations = `/api/projects/${projectId}/backup-destinations`
      const config = {
        schedule: '0 3 * * *',
        destination_id: idOf(await client.post(destinations, destination))
      }
      ids.configId = idOf(await client.post(`${backedUp}/backup-configs`, config))
    }
  }
  if (path.includes('{userId}')) ids.userId = (await k.user('somebody')).id
  if (!path.includes('{projectId}')) return ids
  const projectId = idOf(await client.post('/api/projects', { name: 'P', slug: `p-${made++}` }))
  if (path.includes('{destId}'))
    ids.destId = idOf(await client.post(`/api/projects/${projectId}/backup-destinations`, destination))
  if (path.includes('{databaseId}')) {
    const databases = `/api/projects/${projectId}/databases`
    ids.databaseId = idOf(await client.post(databases, { name: 'D', type: 'postgres' }))
    await configFor(`${databases}/${ids.databaseId}`)
  }
  const variables = { vars: [{ key: 'API_KEY', value: 'kept', is_secret: true }] }
  await client.put(`/api/projects/${projectId}/env`, variables)
  if (!path.includes('{applicationId}')) return { ...ids, projectId }
  const source = {
    name: 'A',
    type: 'git',
    build_type: 'dockerfile',
    source_repo: 'https://git.example.com/a/b.git',
    branch: 'main'
  }
  const applicationId = idOf(await client.post(`/api/projects/${projectId}/applications`, source))
  const application = `/api/projects/${projectId}/applications/${applicationId}`
  await client.put(`${application}/env`, variables)
  if (path.includes('{fileMountId}'))
    ids.fileMountId = idOf(
      await client.post(`${application}/file-mounts`, { mount_path: '/etc/a/b', content: 'c' })
    )
  if (path.includes('{volumeId}')) {
    ids.volumeId = idOf(await client.post(`${application}/volumes`, { name: 'files', mount_path: '/files' }))
    await configFor(`${application}/volumes/${ids.volumeId}`)
  }
  // Of an example before, in another project.
  await k.query('delete from domains.domain')
  if (path.includes('{domainId}')) {
    const domains = `/api/projects/${projectId}/applications/${applicationId}/domains`
    const domainId = idOf(await client.post(domains, { hostname: `d-${made++}.example.net` }))
    const feature = { feature_type: 'ip_allowlist', config: { ranges: ['10.0.0.0/8'] } }
    const { body } = await client.put(`${domains}/${domainId}/features`, feature)
    return { ...ids, projectId, applicationId, domainId, featureId: body.id }
  }
  if (!path.includes('{deploymentId}')) return { ...ids, projectId, applicationId }
  const deploying = await client.post(`/api/projects/${projectId}/applications/${applicationId}/deploy`)
  return { ...ids, projectId, applicationId, deploymentId: deploying.body.id }
}

/** What an operation does not answer without, where an example is of another parameter. */
const neededQueries: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/api/certificates/usable': { hostname: 'www.example.com' }
}

async function send({ method, path, body, values = {} }: Example): Promise<TestAnswer> {
  const client = await newAdmin()
  const ids = await fixture(client, path)
  const idOf = (name: string): string => {
    const value = values[`path ${name}`] ?? ids[name]
    if (value === undefined) throw new Error(`${path}: the fixture has no ${name}`)
    return encodeURIComponent(value)
  }
  const query = Object.entries(values).flatMap(([name, value]) =>
    name.startsWith('query ') ? [[name.slice('query '.length), value] as [string, string]] : []
  )
  return await client.send(
    method.toUpperCase(),
    `${path.replace(/\{(\w+)\}/g, (_, name: string) => idOf(name))}?${new URLSearchParams(Object.entries({ ...neededQueries[path], ...Object.fromEntries(query) }))}`,
    body === undefined ? {} : { body }
  )
}

/** Examples that name or need what cannot be there, by what they are refused with: a secret, the id of somebody else's record, a container, another proxy. */
const refused: Readonly<Record<string, string>> = {
  'GET /api/maintenance/logs': 'E_SERVICE_LOGS',
  'POST /api/auth/accept-invitation': 'E_INVITATION_NOT_FOUND',
  'POST /api/auth/login/verify': 'E_AUTH_CHALLENGE',
  'POST /api/auth/reset-password': 'E_PASSWORD_RESET',
  'POST /api/auth/setup': 'E_AUTH_SETUP_COMPLETED',
  'POST /api/auth/totp/disable': 'E_TOTP_DISABLED',
  'POST /api/auth/totp/enroll/verify': 'E_TOTP_NOT_ENROLLED',
  'POST /api/auth/totp/recovery-codes': 'E_TOTP_DISABLED',
  'POST /api/certificates': 'E_CERTIFICATE_UNREADABLE',
  'POST /api/maintenance/restart': 'E_SERVICE_RESTART',
  'POST /api/plugins/{pluginId}/purge': 'E_PLUGIN_ON',
  'POST /api/projects/{projectId}/applications/{applicationId}/volumes/{volumeId}/backup-configs':
    'E_BACKUP_DESTINATION_UNKNOWN',
  'PUT /api/projects/{projectId}/applications/{applicationId}/volumes/{volumeId}/backup-configs/{configId}':
    'E_BACKUP_DESTINATION_UNKNOWN',
  'POST /api/projects/{projectId}/applications/{applicationId}/volumes/{volumeId}/backups/{backupId}/restore':
    'E_BACKUP_NOT_FOUND',
  'POST /api/projects/{projectId}/databases/{databaseId}/backup-configs': 'E_BACKUP_DESTINATION_UNKNOWN',
  'PUT /api/projects/{projectId}/databases/{databaseId}/backup-configs/{configId}':
    'E_BACKUP_DESTINATION_UNKNOWN',
  'POST /api/projects/{projectId}/databases/{databaseId}/external-access': 'E_DATABASE_BUSY_NOW',
  'POST /api/projects/{projectId}/databases/{databaseId}/restore': 'E_RESTORE_BACKUP',
  'POST /api/projects/{projectId}/databases/{databaseId}/upgrade': 'E_DATABASE_BUSY_NOW',
  'POST /api/projects/{projectId}/orphaned-volume-backups/{backupId}/restore': 'E_BACKUP_NOT_FOUND',
  'POST /api/projects/{projectId}/applications/{applicationId}/rollback': 'E_ROLLBACK_FOREIGN',
  'POST /api/projects/{projectId}/applications/{applicationId}/terminal': 'E_TERMINAL_NO_CONTAINER',
  'PUT /api/projects/{projectId}/transfer': 'E_PROJECT_NO_SUCH_USER',
  'PUT /api/users/{userId}/password': 'E_AUTH_PASSWORD',
  'POST /api/users/{userId}/totp/reset': 'E_AUTH_PASSWORD'
}

test('every example is accepted by the operation that shows it', async t => {
  k = await createTestKernel()
  await k.as.session('admin')
  api = (await k.as.anonymous().get('/api/openapi.json')).body
  const shown = examples()
  t.ok(shown.length >= 40, 'the examples are found')
  for (const example of shown) {
    k.resetRateLimits()
    const { status, body } = await send(example)
    const name = `${example.method.toUpperCase()} ${example.path}`
    const told = `${name} answers ${status} ${JSON.stringify(body)} to ${JSON.stringify(example.body ?? example.values)}`
    const code = refused[name]
    if (code === undefined) t.ok(status >= 200 && status < 300, told)
    else t.equal(body.code, code, told)
  }
})

test('the platform stops', async () => {
  await k.close()
})
