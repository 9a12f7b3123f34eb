import { registryAccounts } from 'busbar/api/registries'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const password = 'correct-horse-battery-0123456789'

test('accounts of registries over HTTP', async t => {
  const lines: string[] = []
  const k = await createTestKernel({ onLog: line => lines.push(line) })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const ann = await k.as.session('ann')
  const token = await k.as.token('write', { user: 'ann' })
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const ofProject = `/api/projects/${project.id}/registries`
  const accounts = k.service(registryAccounts)

  for (const [whose, path, owner] of [
    ['a project', ofProject, ann],
    ['the installation', '/api/registries', admin]
  ] as const) {
    await t.test(`an account of ${whose} is set, replaced, listed and deleted`, async t => {
      const first = await owner.put(path, { registry: 'https://GHCR.io/', username: 'one', password })
      t.match(first, { status: 200, body: { registry: 'ghcr.io', username: 'one' } })
      const second = await owner.put(path, { registry: 'ghcr.io', username: 'two', password: `${password}2` })
      t.match(second.body, { id: first.body.id, username: 'two', created_at: first.body.created_at })
      await owner.put(path, { registry: 'docker.io', username: 'hub', password })
      const list = await owner.get(`${path}?limit=1`)
      t.match(list, { status: 200, headers: { 'x-total-count': '2' }, body: [{ registry: 'docker.io' }] })
      t.strictSame(Object.keys(list.body[0]).sort(), [
        'created_at',
        'id',
        'registry',
        'updated_at',
        'username'
      ])
      t.match(await owner.delete(`${path}/${second.body.id}`), { status: 200, body: { status: 'deleted' } })
      t.match(await owner.delete(`${path}/${second.body.id}`), {
        status: 404,
        body: { code: 'E_REGISTRY_ACCOUNT_NOT_FOUND' }
      })
      t.match((await owner.get(path)).body, [{ registry: 'docker.io' }])
      await owner.delete(`${path}/${list.body[0].id}`)
    })

    await t.test(`an account of ${whose} that is none is refused, and says which field`, async t => {
      for (const [field, body] of [
        ['registry', { registry: 'ghcr.io/team', username: 'u', password }],
        ['registry', { registry: '', username: 'u', password }],
        ['username', { registry: 'ghcr.io', username: 'a:b', password }],
        ['username', { registry: 'ghcr.io', username: '', password }],
        ['password', { registry: 'ghcr.io', username: 'u', password: '' }],
        ['password', { registry: 'ghcr.io', username: 'u' }]
      ] as const) {
        const answer = await owner.put(path, body)
        t.equal(answer.status, 400, JSON.stringify(body))
        t.match(answer.body.error, field)
        t.notMatch(JSON.stringify(answer.body), password)
      }
      t.same((await owner.get(path)).body, [])
    })
  }

  await t.test(
    'the account of the project wins over that of the installation for the same registry',
    async t => {
      t.equal(await accounts.find(project.id, 'ghcr.io/team/app:1'), undefined)
      const shared = await admin.put('/api/registries', { registry: 'ghcr.io', username: 'shared', password })
      t.same(await accounts.find(project.id, 'ghcr.io/team/app:1'), {
        username: 'shared',
        password,
        of: 'installation'
      })
      const own = await token.put(ofProject, {
        registry: 'ghcr.io',
        username: 'own',
        password: 'another-0123'
      })
      t.same(await accounts.find(project.id, 'ghcr.io/team/app:1'), {
        username: 'own',
        password: 'another-0123',
        of: 'project'
      })
      t.equal(await accounts.find(project.id, 'ghcr.io.example.com/app'), undefined, 'no other host has it')
      t.equal(await accounts.find(project.id, 'team/app'), undefined)
      await ann.delete(`${ofProject}/${own.body.id}`)
      t.match(await accounts.find(project.id, 'GHCR.io/x'), { username: 'shared' })
      await admin.delete(`/api/registries/${shared.body.id}`)
      t.equal(await accounts.find(project.id, 'ghcr.io/team/app:1'), undefined)
    }
  )

  await t.test('accounts are reached by their own owner only', async t => {
    const bob = await k.as.session('bob')
    const { body: other } = await bob.post('/api/projects', { name: 'y', slug: 'y' })
    const ofOther = `/api/projects/${other.id}/registries`
    const shared = await admin.put('/api/registries', { registry: 'ghcr.io', username: 'shared', password })
    const own = await ann.put(ofProject, { registry: 'ghcr.io', username: 'own', password })
    for (const id of [shared.body.id, own.body.id]) {
      t.equal((await bob.delete(`${ofOther}/${id}`)).status, 404)
      t.equal((await bob.post(`${ofOther}/${id}/test`)).status, 404)
    }
    t.equal((await ann.delete(`${ofProject}/${shared.body.id}`)).status, 404)
    t.equal((await admin.delete(`/api/registries/${own.body.id}`)).status, 404)
    t.equal((await bob.get(ofProject)).status, 404)
    for (const client of [ann, token]) {
      t.equal((await client.get('/api/registries')).status, 403)
      t.equal(
        (await client.put('/api/registries', { registry: 'ghcr.io', username: 'u', password })).status,
        403
      )
      t.equal((await client.post(`/api/registries/${shared.body.id}/test`)).status, 403)
    }
    t.equal(await accounts.find(other.id, 'ghcr.io/x').then(found => found?.username), 'shared')
  })

  await t.test('a viewer sees which accounts there are, and changes none', async t => {
    const viewer = await k.as.session('vic')
    const { email } = await k.user('vic')
    t.equal((await ann.put(`/api/projects/${project.id}/members`, { email, role: 'viewer' })).status, 200)
    const [listed] = (await viewer.get(ofProject)).body
    t.match(listed, { registry: 'ghcr.io', username: 'own' })
    t.equal((await viewer.put(ofProject, { registry: 'ghcr.io', username: 'u', password })).status, 403)
    t.equal((await viewer.delete(`${ofProject}/${listed.id}`)).status, 403)
  })

  await t.test('no password is in an answer, in the database, in the audit log or in the log', async t => {
    const tables = await k.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`
    )
    for (const { name } of tables)
      t.same(
        await k.query(`select 1 from ${name} as t where position($1 in t::text) > 0`, [password]),
        [],
        name
      )
    t.notMatch(lines.join('\n'), password)
    const audit = (await admin.get('/api/audit-logs?action=set_registry_account')).body
    t.ok(audit.total > 4)
    t.notMatch(JSON.stringify(audit), password)
    t.notMatch(JSON.stringify((await ann.get(ofProject)).body), password)
  })

  await t.test('an installation has at most 100, a project too', async t => {
    const there = (await ann.get(ofProject)).body.length as number
    for (let n = there; n < 100; n++)
      t.equal(
        (await ann.put(ofProject, { registry: `r${n}.example.com`, username: 'u', password })).status,
        200
      )
    t.match(await ann.put(ofProject, { registry: 'more.example.com', username: 'u', password }), {
      status: 409,
      body: { code: 'E_REGISTRY_ACCOUNT_LIMIT' }
    })
    t.equal((await ann.put(ofProject, { registry: 'r50.example.com', username: 'v', password })).status, 200)
  })

  await t.test('accounts go with their project', async t => {
    await ann.delete(`/api/projects/${project.id}`)
    await until(
      async () => (await k.query('select 1 from projects.project where id = $1', [project.id])).length === 0,
      'the project is gone',
      60_000
    )
    t.same(await k.query('select 1 from registries.account where project_id is not null'), [])
    t.equal((await k.query('select 1 from registries.account')).length, 1, 'those of the installation stay')
  })
})

test('an account is not tried where the plugin that pulls images is off, and the answer says so', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { body } = await admin.put('/api/registries', { registry: 'ghcr.io', username: 'one', password })
  await k.disable('builds', { cascade: true })
  t.match(await admin.post(`/api/registries/${body.id}/test`), {
    status: 200,
    body: { status: 'unreachable', reason: /enable the plugin "builds"/ }
  })
})
