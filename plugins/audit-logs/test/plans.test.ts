import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { readFilter } from '../audit-filter.js'
import { AuditStore } from '../audit-store.js'

interface Plan {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly Plans?: readonly Plan[]
}
const nodesOf = (plan: Plan): string[] => [
  `${plan['Node Type']} ${plan['Index Name'] ?? ''}`.trim(),
  ...(plan.Plans ?? []).flatMap(nodesOf)
]

test('with 200 000 records, no page of the list or the export reads or sorts more than it shows', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  await k.query(`
    insert into kernel.audit_log (id, action, resource_type, resource_id, user_id, details, created_at)
    select gen_random_uuid(), 'action_' || n % 60, 'kind_' || n % 12, 'r' || n % 5000,
      ('00000000-0000-4000-8000-' || lpad((n % 200)::text, 12, '0'))::uuid, '{}', now() - n * interval '1 minute'
    from generate_series(1, 200000) as n`)
  await k.query('analyze kernel.audit_log')
  const asked: Array<{ text: string; bindings: unknown }> = []
  const db = {
    sql: async (text: string, bindings: unknown): Promise<object[]> => {
      asked.push({ text, bindings })
      return []
    }
  }
  const store = new AuditStore(db as never, 'kernel.audit_log')
  const user = '00000000-0000-4000-8000-000000000007'
  const filters = [
    {},
    { action: 'action_7' },
    { user_id: user },
    { resource_id: 'r77' },
    { resource_type: 'kind_3' },
    { user_id: user, action: 'action_7' },
    { from: '2020-01-01T00:00:00Z', resource_type: 'kind_3' }
  ]
  for (const filter of filters) {
    asked.length = 0
    await store.page(readFilter(filter), { limit: 50, offset: 0 })
    await store.after(readFilter(filter), { id: user, created_at: new Date() }, 500)
    await store.actions()
    for (const { text, bindings } of asked) {
      const [row] = await k
        .database('kernel')
        .sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (format json) ${text}`, bindings as never)
      const nodes = nodesOf(row?.['QUERY PLAN'][0].Plan as Plan)
      t.ok(
        nodes.some(node => /^(Index Scan|Index Only Scan|Bitmap Index Scan) audit_log_/.test(node)),
        `${JSON.stringify(filter)}: ${nodes.join(', ')}`
      )
      t.notOk(
        nodes.some(node => node.startsWith('Seq Scan')),
        'not every record is read'
      )
    }
  }
})
