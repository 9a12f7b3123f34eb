import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { statementsOf } from '../../../lab/statements.js'
import { url } from './inbox-lab.js'

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly Plans?: readonly Plan[]
}
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

test('with 300 000 notifications of others, an inbox is read by its own rows', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  await k.query(`
    insert into identity.user (id, email, username, first_name, last_name, role, password_hash, created_at, updated_at, last_active_at)
    select gen_random_uuid(), 'user' || n || '@example.com', '', '', '', 'member', '', now(), now(), now() from generate_series(1, 300) n`)
  await k.query('insert into notifications.inbox (user_id, last_position) select id, 1000 from identity.user')
  await k.query(
    `insert into notifications.notice (id, type, title, body, project_id, is_for_admins, created_at)
    select gen_random_uuid(), 'a.b', n::text, '', case when n % 2 = 0 then $1::uuid end, false, now() - n * interval '1 minute'
    from generate_series(1, 1000) n`,
    [project]
  )
  await k.query(`
    insert into notifications.entry (user_id, position, notice_id, created_at, read_at)
    select i.user_id, n.title::int, n.id, n.created_at, case when n.title::int < 900 then now() end
    from notifications.inbox i cross join notifications.notice n`)
  await k.query('analyze notifications.notice, notifications.entry, notifications.inbox')

  const texts = await statementsOf(async () => {
    t.equal((await ann.get(`${url}?limit=50&offset=100`)).body.items.length, 50)
    t.match((await ann.get(`${url}/unread-count`)).body, { unread: 101 })
    t.equal((await ann.post(`${url}/read-all`)).status, 204)
  })
  const own = [...new Set(texts.filter(text => text.includes('notifications.entry')))]
  t.equal(own.length, 3)
  for (const text of own) {
    const values = [
      ann.userId,
      null,
      ann.userId,
      ...(text.includes('$5') ? [50, 100] : text.includes('$4') ? [new Date()] : [])
    ]
    const [row] = await k.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, format json) ${text}`,
      values
    )
    for (const node of nodesOf(row?.['QUERY PLAN'][0].Plan as Plan)) {
      const read = node['Actual Rows'] * node['Actual Loops']
      if (node['Relation Name'] === 'entry')
        t.ok(read <= 1_000, `${node['Node Type']} reads ${read} of 300 000: ${text.slice(0, 60)}`)
      t.not(`${node['Node Type']} ${node['Relation Name'] ?? ''}`, 'Seq Scan entry')
    }
  }
})
