import { randomUUID } from 'node:crypto'
import { json } from 'node:stream/consumers'
import {
  type TestClient as Client,
  createTestKernel,
  TestClient,
  type TestKernel,
  testClock,
  until
} from 'busbar/sdk/testing'
import { test } from 'tap'
import { listenToStatements } from '../../../lab/statements.js'

interface Reached {
  method: string
  path: string
  concerns: string
  last_used_at: string | null
}

const made = async (client: Client, slug: string): Promise<string> =>
  (await client.post('/api/projects', { name: slug, slug })).body.id as string

async function tokenOf(
  k: TestKernel,
  owner: Client,
  more: object = {}
): Promise<{ id: string; client: Client }> {
  const { status, body } = await owner.post('/api/tokens', { name: 'ci', scopes: ['read'], ...more })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return {
    id: body.id as string,
    client: new TestClient(k.url, { authorization: `Bearer ${body.token as string}` })
  }
}

/** What a stream is refused with; one that begins may never end. */
async function refusalOf(client: Client, path: string): Promise<any> {
  const answer = await client.open(path)
  if (answer.statusCode !== 200) return await json(answer)
  answer.destroy()
  return undefined
}
const reachOf = async (owner: Client, id: string) => (await owner.get(`/api/tokens/${id}/reach`)).body
const names = ({ operations }: { operations: Reached[] }): string[] =>
  operations.map(({ method, path }) => `${method} ${path}`)

test('a token reaches the operations that its scope and role let it in to, as the guard decides it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const admin = await k.as.session()
  await made(ann, 'mine')
  for (const [owner, role, scopes] of [
    [ann, 'member', ['metrics', 'read', 'write']],
    [admin, 'admin', ['deploy']]
  ] as const) {
    for (const scope of scopes) {
      const { id, client } = await tokenOf(k, owner, { scopes: [scope] })
      const reach = await reachOf(owner, id)
      t.match(reach, { id, role, scopes: [scope], pinned: false, role_at_issue: role })
      if (scope !== 'metrics') t.ok(reach.operations.length > 0)
      const reached = new Set(names(reach))
      const wrong: string[] = []
      for (const {
        record: { method, url, access, produces }
      } of k.routes().filter(({ isServed }) => isServed)) {
        if (access.kind === 'public' || method !== 'GET') continue
        k.resetRateLimits()
        const path = url.replace(/:\w+/g, 'x')
        const body =
          produces === 'text/event-stream' ? await refusalOf(client, path) : (await client.get(path)).body
        const isRefused = ['E_SESSION_REQUIRED', 'E_SCOPE', 'E_FORBIDDEN', 'E_PROJECT_PINNED'].includes(
          body?.code as string
        )
        const name = `${method} ${url.replace(/:(\w+)/g, '{$1}')}`
        if (isRefused === reached.has(name)) wrong.push(name)
      }
      t.same(wrong, [], `${scope} of ${role}`)
    }
  }
})

test('a token reaches the projects of its owner, narrowed by its pins', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const bob = await k.as.session('bob')
  const admin = await k.as.session()
  const [mine, other, , shared] = [
    await made(ann, 'mine'),
    await made(ann, 'other'),
    await made(bob, 'hidden'),
    await made(bob, 'shared')
  ]
  await bob.put(`/api/projects/${shared}/sharing`, { shared: true })
  const slugs = async (owner: Client, id: string) =>
    (await reachOf(owner, id)).projects.map(({ slug }: { slug: string }) => slug)
  const open = await tokenOf(k, ann)
  t.same(await slugs(ann, open.id), ['shared', 'other', 'mine'])
  const pinned = await tokenOf(k, ann, { project_ids: [mine, shared] })
  t.same(await slugs(ann, pinned.id), ['shared', 'mine'])
  t.match(await reachOf(ann, pinned.id), {
    pinned: true,
    projects: [{ name: 'shared', last_used_at: null }, {}]
  })
  await bob.put(`/api/projects/${shared}/sharing`, { shared: false })
  t.same(await slugs(ann, pinned.id), ['mine'], 'what is no longer shared is out of reach')
  t.same(await slugs(admin, (await tokenOf(k, admin)).id), ['shared', 'hidden', 'other', 'mine'])

  t.notOk(names(await reachOf(ann, pinned.id)).includes('POST /api/projects'))
  await ann.delete(`/api/projects/${mine}`)
  const empty = await reachOf(ann, pinned.id)
  t.match(empty, { pinned: true, project_ids: [shared], projects: [] })
  t.ok(names(empty).includes('GET /api/auth/me'))
  t.same(
    empty.operations.filter(({ concerns }: Reached) => concerns === 'project'),
    [],
    'without a project there is nothing to do in one'
  )
  t.equal((await ann.get(`/api/projects/${other}`)).status, 200)
})

test('a role is narrowed to the lower of then and now, and an expired token reaches nothing', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { id: annId, email, password } = await k.user('ann')
  const session = async () => {
    k.resetRateLimits()
    const { body, headers } = await k.as.anonymous().post('/api/auth/login', { email, password })
    const cookies = (headers['set-cookie'] ?? []).map(line => line.split(';')[0] ?? '')
    t.ok(body.token)
    return new TestClient(k.url, {
      cookie: cookies.join('; '),
      'x-csrf-token': cookies.find(one => one.startsWith('csrf_token='))?.slice(11) ?? ''
    })
  }
  const asMember = await tokenOf(k, await session())
  await admin.put(`/api/users/${annId}/role`, { role: 'admin' })
  const asAdmin = await tokenOf(k, await session(), { expires_in_days: 1 })
  let ann = await session()
  t.match(await reachOf(ann, asMember.id), { role: 'member', role_at_issue: 'member' })
  t.notOk(names(await reachOf(ann, asMember.id)).includes('GET /api/users'))
  t.match(await reachOf(ann, asAdmin.id), { role: 'admin' })
  t.ok(names(await reachOf(ann, asAdmin.id)).includes('GET /api/users'))
  await admin.put(`/api/users/${annId}/role`, { role: 'member' })
  ann = await session()
  t.match(await reachOf(ann, asAdmin.id), { role: 'member', role_at_issue: 'admin' })
  await k.query('update identity.access_token set expires_at = created_at where id = $1', [asAdmin.id])
  t.match(await reachOf(ann, asAdmin.id), { projects: [], operations: [] })
})

test('each operation and project tells when the token last used it', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const [mine, other] = [await made(ann, 'mine'), await made(ann, 'other')]
  const { id, client } = await tokenOf(k, ann)
  const usesOf = async () => {
    const { operations, projects } = await reachOf(ann, id)
    return {
      operations: Object.fromEntries(
        (operations as Reached[]).flatMap(({ method, path, last_used_at: at }) =>
          at === null ? [] : [[`${method} ${path}`, at]]
        )
      ),
      projects: Object.fromEntries(
        (projects as Array<{ slug: string; last_used_at: string | null }>).map(
          ({ slug, last_used_at: at }) => [slug, at]
        )
      )
    }
  }
  t.same(await usesOf(), { operations: {}, projects: { mine: null, other: null } })
  const first = clock.now().toISOString()
  await client.get(`/api/projects/${mine}`)
  await client.get('/api/auth/me')
  await client.get('/api/users')
  await until(async () => Object.keys((await usesOf()).operations).length === 2, 'both are written')
  t.same(
    await usesOf(),
    {
      operations: { 'GET /api/projects/{projectId}': first, 'GET /api/auth/me': first },
      projects: { mine: first, other: null }
    },
    'what was refused was not used'
  )
  await clock.advance(60_000)
  const second = clock.now().toISOString()
  await client.get(`/api/projects/${other}`)
  await client.get(`/api/projects/${mine}`)
  await until(async () => (await usesOf()).projects.other === second, 'it is written')
  t.same(
    await usesOf(),
    {
      operations: { 'GET /api/projects/{projectId}': second, 'GET /api/auth/me': first },
      projects: { mine: first, other: second }
    },
    'each at most every five minutes, in each project'
  )
  await clock.advance(5 * 60_000)
  await client.get(`/api/projects/${mine}`)
  await until(async () => (await usesOf()).projects.mine === clock.now().toISOString(), 'it is written again')
  t.equal((await ann.delete(`/api/tokens/${id}`)).status, 200)
  t.same(await k.query('select 1 from identity.access_token_use'), [], 'uses go with the token')
})

test('a hundred uses are one statement', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { id, client } = await tokenOf(k, await k.as.session('ann'))
  let writes = 0
  t.teardown(
    listenToStatements(({ text }) => {
      if (/insert into identity\.access_token_use/.test(text)) writes++
    })
  )
  await Promise.all(Array.from({ length: 100 }, async () => await client.get('/api/auth/me')))
  await until(
    async () =>
      (await k.query('select 1 from identity.access_token_use where token_id = $1', [id])).length === 1,
    'it is written'
  )
  t.equal(writes, 1)
})

test("nobody looks into another's token, and no token looks into any", async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const admin = await k.as.session()
  const { id, client } = await tokenOf(k, ann, { scopes: ['write'] })
  t.match(await admin.get(`/api/tokens/${id}/reach`), { status: 404, body: { error: 'token not found' } })
  t.match(await ann.get(`/api/tokens/${randomUUID()}/reach`), { status: 404 })
  t.match(await ann.get('/api/tokens/x/reach'), { status: 400 })
  t.match(await client.get(`/api/tokens/${id}/reach`), {
    status: 403,
    body: { error: 'this action requires a session, not a personal access token' }
  })
})
