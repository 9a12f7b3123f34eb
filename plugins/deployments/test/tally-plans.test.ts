import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { DeploymentTallyStore } from '../records/deployment-tally-store.js'

takeAwayFromEngine()

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly Plans?: readonly Plan[]
}
const nodesOf = (plan: Plan): string[] => [
  `${plan['Node Type']} ${plan['Index Name'] ?? plan['Relation Name'] ?? ''}`.trim(),
  ...(plan.Plans ?? []).flatMap(nodesOf)
]

test('with 200 000 deployments of 1 000 applications, those are counted of which it is asked, and no others read', async t => {
  const k = await createTestKernel()
  t.teardown(async () => await k.close())
  const admin = await k.as.session()
  const projectId: string = (await admin.post('/api/projects', { name: 'p', slug: 'p' })).body.id
  const { body: application } = await admin.post(`/api/projects/${projectId}/applications`, {
    name: 'a',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  // All others are made like the first.
  const columns = (
    await k.query<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = 'applications.application'::regclass and attnum > 0 and not attisdropped`
    )
  )
    .map(({ name }) => name)
    .filter(name => name !== 'id' && name !== 'slug')
  await k.query(
    `insert into applications.application (id, slug, ${columns.join(', ')})
    select gen_random_uuid(), 'a' || n, ${columns.join(', ')} from applications.application, generate_series(1, 999) n where id = $1`,
    [application.id]
  )
  await k.query(`
    insert into deployments.deployment (id, project_id, application_id, kind, status, triggered_by, started_at, build_started_at, build_ended_at)
    select gen_random_uuid(), a.project_id, a.id, 'deploy', case when n % 10 = 0 then 'failed' else 'success' end, 'manual',
      now() - n * interval '1 day', now() - n * interval '1 day', now() - n * interval '1 day' + interval '10 s'
    from applications.application a, generate_series(1, 200) n`)
  await k.query('analyze applications.application')
  await k.query('analyze deployments.deployment')
  const asked: Array<{ text: string; bindings: unknown }> = []
  const watched = new DeploymentTallyStore({
    sql: async (text: string, bindings: unknown) => {
      asked.push({ text, bindings })
      return []
    }
  } as never)
  for (const scope of [null, [projectId]]) {
    await watched.ended(scope, new Date(Date.now() - 7 * 86_400_000))
    await watched.failing(scope)
    await watched.underWay(scope)
  }
  t.equal(asked.length, 6)
  for (const { text, bindings } of asked) {
    const [row] = await k
      .database('deployments')
      .sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${text}`, bindings as never)
    const nodes = nodesOf(row?.['QUERY PLAN'][0].Plan as Plan)
    t.notOk(nodes.includes('Seq Scan deployment'), nodes.join(', '))
  }
  t.match((await admin.get('/api/stats')).body, {
    app_health: { total: 1000 },
    deploy_7d: { succeeded: 6000, failed: 0, median_build_ms: 10_000 },
    needs_attention: { failed_deploys: 0 }
  })
})
