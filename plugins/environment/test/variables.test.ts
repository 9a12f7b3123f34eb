import { randomUUID } from 'node:crypto'
import { applicationRegistry } from 'busbar/api/applications'
import { environmentVariables } from 'busbar/api/environment'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('environment variables over HTTP', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const token = await k.as.token('write', { user: 'ann' })
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const { body: application } = await ann.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const ofProject = `/api/projects/${project.id}/env`
  const ofApplication = `/api/projects/${project.id}/applications/${application.id}/env`

  for (const [whose, path] of [
    ['a project', ofProject],
    ['an application', ofApplication]
  ] as const) {
    await t.test(`the variables of ${whose} are replaced as a set and keep their ids`, async t => {
      const vars = [
        { key: 'B', value: 'two', is_secret: false },
        { key: 'A', value: 'hunter2', is_secret: true },
        { key: '' }
      ]
      t.match(await token.put(path, { vars }), { status: 200, body: { status: 'updated' } })
      const before = (await ann.get(path)).body
      t.match(before, [
        { key: 'A', is_secret: true },
        { key: 'B', is_secret: false, value: 'two' }
      ])
      t.notOk('value' in before[0], 'a secret shows no value')
      await ann.put(path, {
        vars: [
          { key: 'A', unchanged: true, is_secret: true },
          { key: 'B', value: 'zwei' },
          { key: 'C', value: '' }
        ]
      })
      const after = (await ann.get(path)).body
      t.match(after, [
        { id: before[0].id, updated_at: before[0].updated_at },
        { id: before[1].id, value: 'zwei' },
        { key: 'C', value: '' }
      ])
      t.match((await ann.get(`${path}/${before[0].id}/reveal`)).body, { value: 'hunter2' })
      await ann.put(path, { vars: [{ key: 'C', unchanged: true }] })
      t.same(
        (await ann.get(path)).body.map((row: { key: string }) => row.key),
        ['C']
      )
    })

    await t.test(`a token never sees a value of ${whose}`, async t => {
      await ann.put(path, {
        vars: [
          { key: 'OPEN', value: 'x' },
          { key: 'CLOSED', value: 'y', is_secret: true }
        ]
      })
      const rows = (await token.get(path)).body
      t.same(
        rows.map((row: object) => 'value' in row),
        [false, false]
      )
      t.equal((await token.get(`${path}/${rows[0].id}/reveal`)).status, 403)
    })

    await t.test(`a set of ${whose} with a fault is refused whole and names the key`, async t => {
      const before = (await ann.get(path)).body
      for (const vars of [
        [
          { key: 'OK', value: '1' },
          { key: 'BAD-KEY', value: '1' }
        ],
        [
          { key: 'TWICE', value: '1' },
          { key: 'TWICE', value: '2' }
        ]
      ]) {
        const answer = await ann.put(path, { vars })
        t.equal(answer.status, 400)
        t.match(answer.body.error, vars[1]?.key)
      }
      t.equal((await ann.put(path, { vars: [{ key: 5 }] })).status, 400)
      t.equal((await ann.put(path, {})).status, 400)
      t.equal(
        (await ann.put(path, { vars: Array.from({ length: 501 }, (_, i) => ({ key: `V${i}`, value: '' })) }))
          .status,
        400
      )
      t.same((await ann.get(path)).body, before)
    })
  }

  await t.test('500 variables are written and read, and a value may have 64 KiB', async t => {
    const vars = Array.from({ length: 500 }, (_, i) => ({
      key: `V${i}`,
      value: i === 0 ? 'ä'.repeat(32 * 1024) : String(i)
    }))
    t.equal((await ann.put(ofProject, { vars })).status, 200)
    const answer = await ann.get(`${ofProject}?limit=3&offset=1`)
    t.equal(answer.headers['x-total-count'], '500')
    t.same(
      answer.body.map((row: { key: string }) => row.key),
      ['V1', 'V10', 'V100'],
      'by key'
    )
    await ann.put(ofProject, { vars: [] })
    t.match(await ann.get(ofProject), { status: 200, body: [] })
  })

  await t.test('variables are found under their own owner only', async t => {
    await ann.put(ofProject, { vars: [{ key: 'P', value: '1' }] })
    const [row] = (await ann.get(ofProject)).body
    t.equal((await ann.get(`${ofApplication}/${row.id}/reveal`)).status, 404)
    const { body: other } = await ann.post('/api/projects', { name: 'y', slug: 'y' })
    t.equal((await ann.get(`/api/projects/${other.id}/env/${row.id}/reveal`)).status, 404)
    t.equal((await ann.get(`/api/projects/${other.id}/applications/${application.id}/env`)).status, 404)
    t.equal((await ann.get(`${ofProject}/nonsense/reveal`)).status, 400)
  })

  await t.test("a deploy gets the project's variables overridden by the application's, in clear", async t => {
    await ann.put(ofProject, {
      vars: [
        { key: 'BOTH', value: 'project', is_secret: true },
        { key: 'ONLY', value: 'p' }
      ]
    })
    await ann.put(ofApplication, {
      vars: [
        { key: 'BOTH', value: 'application' },
        { key: 'APP', value: 'a', is_secret: true }
      ]
    })
    t.same(await k.service(environmentVariables).merged(project.id, application.id), [
      { key: 'APP', value: 'a', isSecret: true },
      { key: 'BOTH', value: 'application', isSecret: false },
      { key: 'ONLY', value: 'p', isSecret: false }
    ])
  })

  await t.test('values are encrypted at rest and open nowhere but in their own row', async t => {
    await ann.put(ofApplication, {
      vars: [
        { key: 'ONE', value: 'plain text' },
        { key: 'TWO', value: 'other' }
      ]
    })
    const rows = await k.query<{ value: string }>('select value from environment.variable')
    t.notOk(rows.some(({ value }) => value.includes('plain text')))
    await k.query(
      `update environment.variable set value = (select value from environment.variable where key = 'ONE') where key = 'TWO'`
    )
    await t.rejects(k.service(environmentVariables).merged(project.id, application.id), {
      code: 'E_VARIABLE_UNREADABLE',
      message: /TWO/
    })
    const [, two] = (await ann.get(ofApplication)).body
    t.notOk('value' in two, 'the list still answers')
    t.equal((await ann.get(`${ofApplication}/${two.id}/reveal`)).status, 500)
    t.equal((await ann.put(ofApplication, { vars: [{ key: 'TWO', value: 'again' }] })).status, 200)
    t.equal((await ann.get(ofApplication)).body[0].value, 'again')
  })

  await t.test(
    "a changed set of an application is a pending config change; the same set and the project's are not",
    async t => {
      const path = `/api/projects/${project.id}/applications/${application.id}`
      await ann.put(ofApplication, { vars: [{ key: 'TWO', value: 'again' }] })
      await k.transaction(async tx => {
        const now = new Date(Date.now() + 1000)
        await k
          .service(applicationRegistry)
          .recordDeployed(
            application.id,
            { deploymentId: randomUUID(), startedAt: now, finishedAt: now, rebuilt: true },
            tx
          )
      })
      const pending = async () => (await ann.get(path)).body.pending_change
      await ann.put(ofProject, { vars: [{ key: 'NEW', value: '1' }] })
      await ann.put(ofApplication, { vars: [{ key: 'TWO', value: 'again' }] })
      t.equal(await pending(), '')
      await ann.put(ofApplication, { vars: [{ key: 'TWO', value: 'changed' }] })
      t.equal(await pending(), 'config')
    }
  )

  await t.test('sets that are replaced at the same time leave one of them whole', async t => {
    const sets = Array.from({ length: 8 }, (_, i) =>
      ['A', 'B', 'C'].map(key => ({ key: `${key}${i % 2}`, value: String(i) }))
    )
    const answers = await Promise.all(sets.map(async vars => await ann.put(ofApplication, { vars })))
    t.same(
      answers.map(({ status }) => status),
      sets.map(() => 200)
    )
    const rows: Array<{ key: string; value: string }> = (await ann.get(ofApplication)).body
    t.equal(rows.length, 3)
    t.equal(new Set(rows.map(({ value }) => value)).size, 1)
  })

  await t.test('reading a value is audited, without the value', async t => {
    await ann.put(ofApplication, { vars: [{ key: 'A', value: 'very-secret-value', is_secret: true }] })
    const [row] = (await ann.get(ofApplication)).body
    await ann.get(`${ofApplication}/${row.id}/reveal`)
    const records = await k.query<{ action: string }>(
      'select * from kernel.audit_log order by created_at desc limit 2'
    )
    t.same(records.map(({ action }) => action).sort(), ['reveal_env_var', 'update_env_vars'])
    t.notMatch(JSON.stringify(records), 'very-secret-value')
  })

  await t.test('a deleted application has no variables to see', async t => {
    const { body: deleted } = await ann.post(`/api/projects/${project.id}/applications`, {
      name: 'deleted',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
    const path = `/api/projects/${project.id}/applications/${deleted.id}`
    t.equal((await ann.put(`${path}/env`, { vars: [{ key: 'A', value: '1' }] })).status, 200)
    await ann.delete(path)
    t.equal((await ann.get(`${path}/env`)).status, 404)
    t.equal((await ann.put(`${path}/env`, { vars: [] })).status, 404)
  })
})
