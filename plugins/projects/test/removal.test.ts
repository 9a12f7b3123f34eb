import { projectDeleted, projectDirectory, projectTeardown } from 'busbar/api/projects'
import { definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'

/** A plugin that keeps rows of a project, and tells in which order it is asked. */
const holder = (id: string, requires: string, seen: string[], isTidy: () => boolean) => ({
  manifest: { id, requires: { [requires]: '^0.1.0' }, grants: ['database'] },
  definition: definePlugin({
    id,
    needs: { db: kernel.database },
    migrations: [
      {
        name: '001-create',
        phase: 'expand',
        sql: 'create table $schema.thing (project_id uuid not null references projects.project (id) on delete restrict)'
      }
    ],
    start: ({ use }) => ({
      teardown: async (projectId: string) => {
        seen.push(id)
        if (isTidy()) await use.db.sql('delete from $schema.thing where project_id = ?', [projectId])
      }
    }),
    contributes(contribute, self) {
      contribute(projectTeardown, id, self)
    },
    events(on) {
      on(projectDeleted, ({ projectId }) => {
        seen.push(`deleted ${projectId}`)
      })
    }
  })
})

test('a deleted project is invisible at once and taken apart, dependants first, the row last', async t => {
  const seen: string[] = []
  const k = await createTestKernel({
    inline: [holder('first', 'projects', seen, () => true), holder('second', 'first', seen, () => true)]
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const { body: other } = await ann.post('/api/projects', { name: 'y', slug: 'y' })
  const token = await k.as.token('read', { user: 'ann', pins: [project.id] })
  const path = `/api/projects/${project.id}`
  for (const schema of ['first', 'second'])
    await k.query(`insert into ${schema}.thing values ($1)`, [project.id])

  t.match(await ann.delete(path), { status: 200, body: { status: 'deleted' } })
  t.equal((await ann.get(path)).status, 404)
  t.equal((await ann.put(path, { name: 'z' })).status, 404)
  t.equal((await ann.delete(path)).status, 404)
  t.same(
    (await ann.get('/api/projects')).body.map((row: { id: string }) => row.id),
    [other.id]
  )
  t.equal(await k.service(projectDirectory).find(project.id), undefined)
  t.same((await token.get('/api/projects')).body, [], 'the pin is gone and nothing took its place')
  t.equal((await token.get(`/api/projects/${other.id}`)).status, 403)

  await until(() => seen.includes(`deleted ${project.id}`), 'the event')
  t.same(
    seen.filter(one => !one.startsWith('deleted')),
    ['second', 'first']
  )
  t.same(await k.query('select id from projects.project where id = $1', [project.id]), [])
  t.equal((await ann.post('/api/projects', { name: 'x', slug: 'x' })).status, 201, 'the slug is free again')
})

test('a teardown waits while another plugin holds rows, says which table, and ends when they are gone', async t => {
  const seen: string[] = []
  const lines: string[] = []
  let tidy = false
  const k = await createTestKernel({
    inline: [holder('keeper', 'projects', seen, () => tidy)],
    onLog: line => lines.push(line)
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  await k.query('insert into keeper.thing values ($1)', [project.id])
  await ann.delete(`/api/projects/${project.id}`)
  await until(
    () =>
      lines.some(line => line.includes('keeper.thing') && line.includes('enable the plugin \\"keeper\\"')),
    'the log line'
  )
  t.equal((await k.query('select id from projects.project where id = $1', [project.id])).length, 1)
  t.match(await ann.post('/api/projects', { name: 'x', slug: 'x' }), {
    status: 409,
    body: { error: /clean-up/ }
  })
  tidy = true
  await until(
    async () => (await k.query('select id from projects.project where id = $1', [project.id])).length === 0,
    'the row to be gone'
  )
  t.ok(seen.length >= 2)
})

test('a plugin that is off but holds rows is started for its step alone', async t => {
  const seen: string[] = []
  const lines: string[] = []
  const k = await createTestKernel({
    inline: [holder('keeper', 'projects', seen, () => true)],
    onLog: line => lines.push(line)
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const application = await ann.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  t.equal(
    (
      await ann.put(`/api/projects/${project.id}/applications/${application.body.id}/env`, {
        vars: [{ key: 'A', value: '1' }]
      })
    ).status,
    200
  )
  await k.query('insert into keeper.thing values ($1)', [project.id])
  const admin = await k.as.session()
  for (const id of ['keeper', 'environment'])
    t.equal((await admin.post(`/api/plugins/${id}/disable`, { cascade: true })).status, 200)
  t.equal((await ann.delete(`/api/projects/${project.id}`)).status, 200)
  await until(
    async () => (await k.query('select id from projects.project where id = $1', [project.id])).length === 0,
    'the row to be gone'
  )
  t.same(seen, ['keeper'])
  t.same(await k.query('select 1 from environment.variable'), [])
  t.match((await admin.get('/api/plugins/keeper')).body, { state: 'stopped' })
  t.notOk(
    lines.some(line => line.includes('is not removed yet')),
    'in the first round'
  )
})

test('a project goes with its applications though their plugin and all that need it are off', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { body: project } = await admin.post('/api/projects', { name: 'x', slug: 'x' })
  const all = `/api/projects/${project.id}/applications`
  const source = { type: 'image', build_type: 'image', source_image: 'busybox:lab' }
  const { body: application } = await admin.post(all, { name: 'web', ...source })
  await admin.put(`${all}/${application.id}/env`, { vars: [{ key: 'A', value: '1' }] })
  t.equal((await admin.post('/api/plugins/applications/disable', { cascade: true })).status, 200)
  t.match((await admin.get('/api/plugins/environment')).body, { state: 'stopped' })
  t.equal((await admin.delete(`/api/projects/${project.id}`)).status, 200)
  const left = async (table: string): Promise<number> => (await k.query(`select 1 from ${table}`)).length
  await until(async () => (await left('projects.project')) === 0, 'the project is gone')
  t.equal(await left('applications.application'), 0)
  t.equal(await left('environment.variable'), 0)
  for (const id of ['applications', 'environment'])
    t.match((await admin.get(`/api/plugins/${id}`)).body, { state: 'stopped' })
})

test('a step that fails does not keep the others from their work, and all run again', async t => {
  const seen: string[] = []
  let isBroken = true
  const k = await createTestKernel({
    inline: [
      holder('sound', 'projects', seen, () => true),
      {
        manifest: { id: 'broken', requires: { sound: '^0.1.0' } },
        definition: definePlugin({
          id: 'broken',
          contributes: contribute => {
            contribute(projectTeardown, 'broken', {
              teardown: async () => {
                if (isBroken) throw new Error('not now')
              }
            })
          }
        })
      }
    ]
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  await k.query('insert into sound.thing values ($1)', [project.id])
  await ann.delete(`/api/projects/${project.id}`)
  await until(() => seen.includes('sound'), 'the other step')
  await until(async () => (await k.query('select 1 from sound.thing')).length === 0, 'its work')
  t.equal((await k.query('select 1 from projects.project where id = $1', [project.id])).length, 1)
  isBroken = false
  await until(() => seen.includes(`deleted ${project.id}`), 'the end')
})

test('a platform that was stopped during a deletion starts again and finishes it, an earlier release too', async t => {
  const k = await createTestKernel()
  const admin = await k.as.session()
  const project = (await admin.post('/api/projects', { name: 'Left', slug: 'left' })).body.id as string
  const kept = (await admin.post('/api/projects', { name: 'Kept', slug: 'kept' })).body.id as string
  const application = (
    await admin.post(`/api/projects/${kept}/applications`, {
      name: 'web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
  ).body.id as string
  await k.stop()
  const former = new pg.Client({ connectionString: k.state.database.url })
  await former.connect()
  await former.query('update projects.project set deleting_at = now() where id = $1', [project])
  await former.query('update applications.application set deleting_at = now() where id = $1', [application])
  const add = async (task: string, payload: object, key: string | null): Promise<void> => {
    await former.query(
      "select graphile_worker.add_job($1, $2, job_key => $3, run_at => now() + case when $3::text is null then interval '0' else interval '1 hour' end)",
      [task, JSON.stringify({ payload: { ...payload, round: 7 } }), key]
    )
  }
  // As a release before resources were declared has left them: one that waits, and one whose process has died.
  await add('projects:teardown', { projectId: project }, `projects:teardown:${project}`)
  await add('projects:teardown', { projectId: project }, null)
  await add('applications:teardown', { applicationId: application }, `applications:teardown:${application}`)
  await add('applications:teardown', { applicationId: application }, null)
  await former.end()
  const next = await createTestKernel({ state: k.state })
  t.teardown(async () => {
    await next.close()
  })
  const left = async (text: string): Promise<object[]> => await next.query(text)
  await until(
    async () =>
      (await left("select 1 from graphile_worker.jobs where task_identifier like '%:teardown'")).length === 0,
    'all removals have ended'
  )
  t.same(await left('select id from projects.project'), [{ id: kept }])
  t.same(await left('select id from applications.application'), [])
})
