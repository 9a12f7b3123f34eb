import { type Scope, scopes } from 'busbar/sdk'
import { accessMatrix, createTestKernel, type MatrixRow } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../lab/engine.js'
import { type ContractChannel, type ContractOperation, channels, operations } from '../contract/contract.js'
import { extensionChannels, extensions } from '../contract/extensions.js'

takeAwayFromEngine()
const rank = (scope: Scope): number => scopes.indexOf(scope)
const allowed = 'admitted'

/** Left to a project's owner and to admins, even when the project is shared. */
const ownersOnly = new Set([
  'DELETE /api/projects/{projectId}',
  'PUT /api/projects/{projectId}/sharing',
  'PUT /api/projects/{projectId}/members',
  'DELETE /api/projects/{projectId}/members/{userId}',
  'DELETE /api/projects/{projectId}/applications/{applicationId}',
  'DELETE /api/projects/{projectId}/databases/{databaseId}'
])

/** What the contract alone says a caller must get. */
function expected(who: string, operation: Omit<ContractOperation, 'group'>): MatrixRow['outcome'] {
  const { public: isPublic, scope, admin, pinned, path, method } = operation
  if (isPublic === true) return allowed
  const inProject = path.includes('{projectId}')
  const token = /^token (\w+)/.exec(who)?.[1] as Scope | undefined
  const isReading = scope === 'read' || scope === 'metrics'
  switch (who) {
    case 'anonymous':
      return '401 E_UNAUTHORIZED'
    case 'bad token':
      return '401 E_TOKEN_INVALID'
    case 'session without CSRF':
      return method === 'GET' ? expected('session', operation) : '403 E_CSRF'
    case 'admin session':
      return allowed
    case 'admin session at a nested id of another project':
      return '404 E_NOT_FOUND'
    case 'session':
      return admin ? '403 E_FORBIDDEN' : allowed
    case 'session of a viewer':
      if (!admin && inProject && !isReading && !ownersOnly.has(`${method} ${path}`))
        return '403 E_PROJECT_VIEWER'
      return expected('session of an editor', operation)
    case 'session of an editor':
    case 'session of a member at a shared project':
      return admin || ownersOnly.has(`${method} ${path}`) ? '403 E_FORBIDDEN' : allowed
    case 'session of a stranger':
    case 'session at a foreign project':
    case 'session of a viewer at a foreign project':
      return admin ? '403 E_FORBIDDEN' : inProject ? '404 E_NOT_FOUND' : allowed
  }
  if (scope === null) return '403 E_SESSION_REQUIRED'
  if (token !== undefined && rank(token) < rank(scope)) return '403 E_SCOPE'
  if (admin && !who.startsWith('admin')) return '403 E_FORBIDDEN'
  if (pinned === 'never' && who.includes('pinned')) return '403 E_PROJECT_PINNED'
  if (who === 'token write of a viewer' && inProject && !isReading) return '403 E_PROJECT_VIEWER'
  return who.includes('pinned outside') && inProject ? '403 E_PROJECT_PINNED' : allowed
}

/** The same for a channel; a socket needs a credential with the scope `read`. */
function expectedOnChannel(
  who: string,
  { who: forWhom, pinned, name }: ContractChannel
): MatrixRow['outcome'] {
  const refused = '403 access denied'
  if (who === 'anonymous' || who === 'bad token') return '401 upgrade'
  if (who === 'token metrics') return '403 upgrade'
  if (forWhom.startsWith('admin'))
    return !who.startsWith('admin') || (pinned === 'never' && who.includes('pinned')) ? refused : allowed
  if (!name.includes('{')) return allowed
  if (
    who === 'session of a stranger' ||
    who.endsWith('at a foreign project') ||
    who.includes('pinned outside')
  )
    return refused
  return allowed
}

test('every route and channel lets in exactly whom the contract says', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const made = async (name: string, slug = name) => {
    const client = await k.as.session(name)
    const project = (await client.post('/api/projects', { name, slug })).body.id as string
    const application = (
      await client.post(`/api/projects/${project}/applications`, {
        name: 'app',
        type: 'git',
        build_type: 'dockerfile',
        source_repo: 'http://127.0.0.1:9/nothing.git'
      })
    ).body.id as string
    const deployment = (await client.post(`/api/projects/${project}/applications/${application}/deploy`)).body
      .id as string
    const domain = (
      await client.post(`/api/projects/${project}/applications/${application}/domains`, {
        hostname: `${slug}.example.com`
      })
    ).body.id as string
    const of = `/api/projects/${project}/applications/${application}`
    const volume = (await client.post(`${of}/volumes`, { name: 'data', mount_path: '/data' })).body
      .id as string
    const fileMount = (await client.post(`${of}/file-mounts`, { mount_path: '/app/key', content: 'x' })).body
      .id as string
    t.ok(volume && fileMount, `${name} has a volume and a file mount`)
    const database = (await client.post(`/api/projects/${project}/databases`, { name: 'db', type: 'redis' }))
      .body.id as string
    t.ok(database, `${name} has a database`)
    const isMade = project && application && deployment && domain
    t.ok(isMade, `${name} has a project, an application, a deployment and a domain`)
    return { project, application, deployment, domain, volume, fileMount, database }
  }
  const own = await made('owner')
  const foreign = await made('stranger')
  const shared = await made('owner', 'shared')
  t.equal(
    (await (await k.as.session('owner')).put(`/api/projects/${shared.project}/sharing`, { shared: true }))
      .status,
    200
  )
  for (const role of ['viewer', 'editor']) {
    const { email } = await k.user(role)
    t.equal(
      (await (await k.as.session('owner')).put(`/api/projects/${own.project}/members`, { email, role }))
        .status,
      200
    )
  }
  const rows = await accessMatrix(k, {
    project: own.project,
    foreignProject: foreign.project,
    sharedProject: shared.project,
    resources: {
      applicationId: { inside: own.application, foreign: foreign.application, shared: shared.application },
      deploymentId: { inside: own.deployment, foreign: foreign.deployment, shared: shared.deployment },
      volumeId: { inside: own.volume, foreign: foreign.volume, shared: shared.volume },
      fileMountId: { inside: own.fileMount, foreign: foreign.fileMount, shared: shared.fileMount },
      domainId: { inside: own.domain, foreign: foreign.domain, shared: shared.domain },
      databaseId: { inside: own.database, foreign: foreign.database, shared: shared.database },
      sourceId: { inside: own.application, foreign: foreign.application, shared: shared.application }
    }
  })
  // Files of pages: the description leaves them out, which only public ones may ask for.
  const pages = new Map<string, ContractOperation>(
    k
      .routes()
      .filter(({ record }) => !record.documented)
      .map(({ record: { method, url: path } }) => [
        `${method} ${path}`,
        { method, path, group: '', public: true, scope: null, session: false, admin: false }
      ])
  )
  const unnamed = new Set<string>()
  const wrong: string[] = []
  for (const { operation, who, outcome } of rows) {
    const channel = channels.get(operation) ?? extensionChannels[operation]
    const extension = extensions[operation]
    const [method = '', path = ''] = operation.split(' ')
    const named =
      operations.get(operation) ??
      pages.get(operation) ??
      (extension === undefined ? undefined : { method, path, ...extension })
    if (named === undefined && channel === undefined) {
      unnamed.add(operation)
      continue
    }
    const wanted =
      channel !== undefined
        ? expectedOnChannel(who, channel)
        : named === undefined
          ? ''
          : expected(who, named)
    if (outcome !== wanted) wrong.push(`${operation} as ${who}: ${outcome} instead of ${wanted}`)
  }
  t.same([...unnamed], [], 'each is in the contract or among the extensions')
  t.same(wrong, [], `${rows.length} doors are as the contract says`)
  t.ok(rows.length > 500)
})
