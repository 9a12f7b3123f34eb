import { identity } from 'busbar/api/identity'
import { createTestKernel, TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'

takeAwayFromEngine()
const readsOnly = {
  status: 403,
  body: {
    code: 'E_PROJECT_VIEWER',
    error: 'you are a viewer of this project and may only read: ask its owner to make you an editor'
  }
}
const hidden = { status: 404, body: { code: 'E_NOT_FOUND' } }

/** `ann` owns a project with an application; `vic` views it, `ed` edits it; `sue` is a stranger. */
async function cast(k: TestKernel) {
  const [admin, ann, vic, ed, sue] = [
    await k.as.session(),
    await k.as.session('ann'),
    await k.as.session('vic'),
    await k.as.session('ed'),
    await k.as.session('sue')
  ]
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const path = `/api/projects/${project}`
  const addressOf = async (name: string): Promise<string> => (await k.user(name)).email
  const set = async (name: string, role: string, by = ann) => {
    k.resetRateLimits()
    return await by.put(`${path}/members`, { email: await addressOf(name), role })
  }
  await set('vic', 'viewer')
  await set('ed', 'editor')
  const application = (
    await ann.post(`${path}/applications`, {
      name: 'web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
  ).body.id as string
  return { admin, ann, vic, ed, sue, project, path, application, set, addressOf }
}

const rolesIn = async (client: TestClient, path: string): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await client.get(`${path}/members`)).body.map(
      ({ username, role }: { username: string; role: string }) => [username, role]
    )
  )

test('the owner of a project lets others in by their e-mail address, each with a role', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { admin, ann, vic, ed, sue, path, set, addressOf } = await cast(k)

  await t.test('everybody who sees it sees who else does, the owner first', async t => {
    for (const client of [admin, ann, vic, ed])
      t.same(Object.entries(await rolesIn(client, path)), [
        ['ann', 'owner'],
        ['ed', 'editor'],
        ['vic', 'viewer']
      ])
    t.match((await vic.get(`${path}/members`)).body[1], {
      user_id: ed.userId,
      email: await addressOf('ed'),
      username: 'ed',
      role: 'editor',
      created_at: String
    })
    t.match(await sue.get(`${path}/members`), hidden)
  })

  await t.test('to add again changes the role and nothing else', async t => {
    const before = (await ann.get(`${path}/members`)).body[1]
    t.match(
      await ann.put(`${path}/members`, {
        email: ` ${(await addressOf('ed')).toUpperCase()} `,
        role: 'viewer'
      }),
      { status: 200, body: { ...before, role: 'viewer' } }
    )
    t.match(await ed.put(path, { name: 'x' }), readsOnly)
    t.match(await set('ed', 'editor', admin), { status: 200, body: before })
    t.equal((await ed.put(path, { name: 'Shop' })).status, 200, 'at once, although it was remembered')
  })

  await t.test('nobody else changes who belongs to it', async t => {
    for (const client of [vic, ed]) {
      t.match(await set('sue', 'viewer', client), { status: 403, body: { code: 'E_FORBIDDEN' } })
      t.match(await client.delete(`${path}/members/${ann.userId}`), {
        status: 403,
        body: { code: 'E_FORBIDDEN' }
      })
    }
    t.match(await vic.delete(`${path}/members/${ed.userId}`), { status: 403, body: { code: 'E_FORBIDDEN' } })
    t.match(await set('sue', 'editor', sue), hidden)
    t.match(await sue.delete(`${path}/members/${sue.userId}`), hidden)
    const token = await k.as.token('write', { user: 'ann' })
    t.match(await set('sue', 'editor', token), { status: 403, body: { code: 'E_SESSION_REQUIRED' } })
    t.match(await token.delete(`${path}/members/${vic.userId}`), {
      status: 403,
      body: { code: 'E_SESSION_REQUIRED' }
    })
    t.same(await rolesIn(ann, path), { ann: 'owner', ed: 'editor', vic: 'viewer' })
  })

  await t.test(
    "an address of nobody, the owner's own, and a role there is not are refused with the reason",
    async t => {
      const put = async (body: object) => await ann.put(`${path}/members`, body)
      t.match(await put({ email: 'nobody@example.com', role: 'viewer' }), {
        status: 400,
        body: {
          code: 'E_PROJECT_NO_SUCH_ADDRESS',
          error: 'email: no user on this platform has this address; an administrator can invite them'
        }
      })
      t.match(await set('ann', 'viewer'), {
        status: 400,
        body: { code: 'E_PROJECT_OWNER', error: /owns the project/ }
      })
      t.match(await ann.delete(`${path}/members/${ann.userId}`), {
        status: 400,
        body: { code: 'E_PROJECT_OWNER' }
      })
      for (const role of ['owner', 'admin', '', 5])
        t.match(await put({ email: await addressOf('sue'), role }), { status: 400, body: { error: /role/ } })
      t.match(await put({ role: 'viewer' }), { status: 400, body: { error: /email/ } })
      t.match(await put({ email: 'e'.repeat(300), role: 'viewer' }), {
        status: 400,
        body: { error: /email/ }
      })
    }
  )

  await t.test('who tries many addresses is stopped', async t => {
    k.resetRateLimits()
    let answer = 0
    for (let n = 0; n < 31; n++)
      answer = (await ann.put(`${path}/members`, { email: `guess-${n}@example.com`, role: 'viewer' })).status
    t.equal(answer, 429)
    k.resetRateLimits()
  })

  await t.test('a member leaves, and is let in again, and each change is in the audit log', async t => {
    const { body: project } = await ann.post('/api/projects', { name: 'Left', slug: 'left' })
    const path = `/api/projects/${project.id as string}`
    const set = async (name: string, role: string) =>
      await ann.put(`${path}/members`, { email: await addressOf(name), role })
    await set('vic', 'viewer')
    await set('ed', 'editor')
    for (const client of [vic, ed])
      t.match(await client.delete(`${path}/members/${client.userId}`), {
        status: 200,
        body: { status: 'removed' }
      })
    for (const client of [vic, ed]) t.match(await client.get(path), hidden)
    t.same(await rolesIn(ann, path), { ann: 'owner' })
    await set('vic', 'viewer')
    t.equal((await vic.get(path)).status, 200)
    for (let n = 0; n < 2; n++)
      t.equal((await ann.delete(`${path}/members/${vic.userId}`)).status, 200, 'once or twice')
    t.match(await vic.get(path), hidden)

    const rows = await k.query(
      'select distinct action, resource_type from kernel.audit_log where project_id = $1 and resource_id = $2 order by action',
      [project.id, vic.userId]
    )
    t.same(rows, [
      { action: 'remove_project_member', resource_type: 'user' },
      { action: 'set_project_member', resource_type: 'user' }
    ])
  })
})

test('a viewer reads, an editor works, and each is told which they are', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { admin, ann, vic, ed, sue, project, path, application } = await cast(k)
  const app = `${path}/applications/${application}`

  for (const url of [
    path,
    `${path}/applications`,
    app,
    `${app}/deployments`,
    `${path}/env`,
    `${app}/env`,
    `${app}/deploy-hook`,
    `${path}/members`
  ]) {
    for (const client of [vic, ed]) t.equal((await client.get(url)).status, 200, url)
    t.match(await sue.get(url), hidden)
  }
  const changes = [
    ['PUT', path, { name: 'X' }],
    ['POST', `${path}/applications`, {}],
    ['PUT', `${path}/env`, { vars: [] }],
    ['PUT', `${app}/env`, { vars: [] }],
    ['POST', `${app}/deploy`, {}],
    ['POST', `${app}/stop`, {}],
    ['POST', `${app}/deploy-hook`, {}],
    ['GET', `${app}/deploy-hook/reveal`, undefined],
    ['GET', `${app}/webhook/reveal`, undefined]
  ] as const
  for (const [method, url, body] of changes)
    t.match(await vic.send(method, url, { body }), readsOnly, `${method} ${url}`)
  t.equal((await ed.put(path, { name: 'By ed' })).status, 200)
  t.equal((await ed.post(`${app}/deploy-hook`)).status, 200)
  t.equal((await ed.get(`${app}/deploy-hook/reveal`)).status, 200)
  for (const client of [vic, ed]) {
    for (const url of [path, app])
      t.match(await client.delete(url), { status: 403, body: { code: 'E_FORBIDDEN' } })
    t.equal((await client.put(`${path}/sharing`, { shared: true })).status, 403)
  }

  await t.test('my_role says so wherever a project is answered', async t => {
    for (const [client, role] of [
      [admin, 'admin'],
      [ann, 'owner'],
      [ed, 'editor'],
      [vic, 'viewer']
    ] as const) {
      t.match((await client.get(path)).body, { my_role: role })
      t.match((await client.get('/api/projects')).body, [{ id: project, my_role: role }])
    }
    t.match((await ed.put(path, { name: 'Shop' })).body, { my_role: 'editor' })
    t.match((await ed.put(path, {})).body, { my_role: 'editor' })
    t.match((await ann.put(path, { name: 'Shop' })).body, { my_role: 'owner' })
    t.same((await sue.get('/api/projects')).body, [])
    t.equal((await vic.get('/api/projects')).headers['x-total-count'], '1')
  })

  await t.test('lists across projects hold those of members', async t => {
    t.equal((await ed.post(`${app}/deploy`)).status, 202)
    for (const client of [vic, ed]) {
      t.match((await client.get('/api/deployments')).body, [{ project_id: project }])
      t.match((await client.get(`/api/deployments?project_id=${project}`)).body, [{ project_id: project }])
    }
    t.same((await sue.get('/api/deployments')).body, [])
    t.match(await sue.get(`/api/deployments?project_id=${project}`), { status: 404 })
  })

  await t.test('a project that is shared with everybody lets viewers work in it too', async t => {
    await ann.put(`${path}/sharing`, { shared: true })
    t.match(await vic.put(path, { name: 'By vic' }), { status: 200, body: { my_role: 'editor' } })
    await ann.put(`${path}/sharing`, { shared: false })
    t.match(await vic.put(path, { name: 'By vic' }), readsOnly)
    t.match(await sue.get(path), hidden)
  })
})

test('a token does what both its scope and the role of its user allow', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { ann, vic, ed, project, path, application, set } = await cast(k)
  const app = `${path}/applications/${application}`
  const make = async (
    owner: TestClient,
    scope: string,
    projectIds?: string[]
  ): Promise<{ id: string; client: TestClient }> => {
    const { status, body } = await owner.post('/api/tokens', {
      name: 'ci',
      scopes: [scope],
      project_ids: projectIds
    })
    t.equal(status, 201)
    return {
      id: body.id as string,
      client: new TestClient(k.url, { authorization: `Bearer ${body.token as string}` })
    }
  }
  const [ofViewer, ofEditor, pinned] = [
    await make(vic, 'write'),
    await make(ed, 'read'),
    await make(vic, 'write', [project])
  ]
  for (const { client } of [ofViewer, pinned]) {
    t.match((await client.get(path)).body, { my_role: 'viewer' })
    t.match(await client.put(path, { name: 'x' }), readsOnly)
    t.match(await client.post(`${app}/deploy`), readsOnly)
  }
  t.match(await ofEditor.client.put(path, { name: 'x' }), { status: 403, body: { code: 'E_SCOPE' } })
  t.match(await ofEditor.client.get(app), { status: 200 })

  const reachOf = async (owner: TestClient, id: string) => (await owner.get(`/api/tokens/${id}/reach`)).body
  const names = ({ operations }: { operations: Array<{ method: string; path: string }> }) =>
    operations.map(one => `${one.method} ${one.path}`)
  const viewed = await reachOf(vic, ofViewer.id)
  t.match(viewed.projects, [{ id: project, role: 'viewer' }])
  t.ok(
    names(viewed).includes('GET /api/projects/{projectId}') && names(viewed).includes('POST /api/projects')
  )
  t.notOk(names(viewed).includes('PUT /api/projects/{projectId}'), 'no project lets it do that')
  await vic.post('/api/projects', { name: 'own', slug: 'own' })
  t.ok(names(await reachOf(vic, ofViewer.id)).includes('PUT /api/projects/{projectId}'), 'its own does')
  t.notOk(names(await reachOf(vic, pinned.id)).includes('PUT /api/projects/{projectId}'))
  await set('vic', 'editor')
  t.ok(names(await reachOf(vic, pinned.id)).includes('PUT /api/projects/{projectId}'))
  t.equal((await pinned.client.put(path, { name: 'x' })).status, 200)

  await ann.delete(`${path}/members/${vic.userId}`)
  for (const { client } of [ofViewer, pinned]) t.match(await client.get(path), hidden, 'at once')
  t.same((await pinned.client.get('/api/projects')).body, [])
  t.match(await reachOf(vic, pinned.id), { projects: [] })
  t.match(await vic.post('/api/tokens', { name: 'ci', scopes: ['read'], project_ids: [project] }), {
    status: 400
  })
})

test('members come and go with users, owners and projects', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { admin, ann, vic, ed, path, set, addressOf } = await cast(k)

  await t.test('a user who is deleted leaves every project', async t => {
    const gone = await k.as.session('gone')
    await set('gone', 'editor')
    t.equal((await admin.delete(`/api/users/${gone.userId}`)).status, 200)
    t.same(await rolesIn(ann, path), { ann: 'owner', ed: 'editor', vic: 'viewer' })
  })

  await t.test('an admin who is a member too is one when the role of the platform is taken away', async t => {
    const { id } = await k.user('bea')
    await admin.put(`/api/users/${id}/role`, { role: 'admin' })
    t.match(await set('bea', 'viewer'), { status: 200, body: { role: 'viewer' } })
    await admin.put(`/api/users/${id}/role`, { role: 'member' })
    t.match((await (await k.as.session('bea')).get(path)).body, { my_role: 'viewer' })
    await ann.delete(`${path}/members/${id}`)
  })

  await t.test('the new owner is no member any more, and the old one keeps nothing', async t => {
    t.match(await admin.put(`${path}/transfer`, { user_id: ed.userId }), {
      status: 200,
      body: { user_id: ed.userId, my_role: 'admin' }
    })
    t.same(await rolesIn(ed, path), { ed: 'owner', vic: 'viewer' })
    t.match(await ann.get(path), hidden)
    await admin.put(`${path}/transfer`, { user_id: ann.userId })
    t.match(await ed.get(path), hidden, 'nor what was before')
    t.match((await vic.get(path)).body, { my_role: 'viewer' })
    await set('ed', 'editor')
  })

  await t.test(
    'a project that is being deleted is hidden from its members, and takes them along',
    async t => {
      const { body: project } = await ann.post('/api/projects', { name: 'Deleted', slug: 'deleted' })
      const path = `/api/projects/${project.id as string}`
      const add = async (name: string) =>
        await ann.put(`${path}/members`, { email: await addressOf(name), role: 'viewer' })
      t.equal((await add('vic')).status, 200)
      t.equal((await ann.delete(path)).status, 200)
      t.match(await vic.get(path), hidden)
      t.match(await vic.delete(`${path}/members/${vic.userId}`), hidden)
      t.match(await add('sue'), hidden)
      t.notOk((await vic.get('/api/projects')).body.some(({ id }: { id: string }) => id === project.id))
      await until(
        async () =>
          (await k.query('select 1 from projects.member where project_id = $1', [project.id])).length === 0,
        'its members are gone'
      )
    }
  )
})

test('a project has a limited number of members, and whoever is one may still be changed', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { project, set, ann, path } = await cast(k)
  await k.query(
    `
    with made as (
      insert into identity.user (id, email, username, first_name, last_name, role, password_hash, created_at, updated_at, last_active_at)
      select gen_random_uuid(), 'many-' || n || '@example.com', '', '', '', 'member', '', now(), now(), now() from generate_series(1, 198) n returning id
    ) insert into projects.member select cast($1 as uuid), id, 'viewer', now() from made`,
    [project]
  )
  t.match(await set('sue', 'viewer'), {
    status: 409,
    body: { code: 'E_PROJECT_MEMBERS_FULL', error: /at most 200 members/ }
  })
  t.equal((await set('ed', 'viewer')).status, 200)
  t.equal((await ann.get(`${path}/members`)).body.length, 201)
})

test('a member who is added while the owner is being deleted is no deadlock', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const { admin, ann, path, set } = await cast(k)
  const waiting = async () =>
    await k.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
  // Both wait for the owner's row, in this order; then the deletion asks who refers to it.
  const both = await k.transaction(async tx => {
    await k.query('select from identity.user where id = $1 for update', [ann.userId], tx)
    const deletion = k
      .service(identity)
      .deleteUser(ann.userId ?? '', admin.userId ?? '')
      .then(
        () => 'deleted',
        (error: unknown) => error
      )
    await until(async () => (await waiting()).length === 1, 'the deletion waits')
    const added = set('ann', 'viewer', admin)
    await until(async () => (await waiting()).length === 2, 'the new member waits behind it')
    return { deletion, added }
  })
  t.match(await both.deletion, { status: 409, code: 'E_USER_OWNS_PROJECTS' })
  t.match(await both.added, { status: 400, body: { code: 'E_PROJECT_OWNER' } })
  t.equal((await ann.get(path)).status, 200)
})
