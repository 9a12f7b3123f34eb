import { createTestKernel, type HappyCalls, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import type { RouteRecord } from '../../core/declarations/records.js'
import { requireEngine } from '../../lab/engine.js'
import { actions } from '../contract/audit-actions.js'
import { call, fixtureFor, type Happy, happyOf, order, removeRound } from './happy-round.js'

interface Row {
  readonly action: string
  readonly resource_type: string
  readonly resource_id: string | null
  readonly user_id: string | null
}

/** Changes that are no news: why. */
const silent: Readonly<Record<string, string>> = {
  'POST /api/auth/refresh': 'a browser renews its session every hour',
  'POST /api/notifications/{notificationId}/read': 'a user has seen something in their own inbox',
  'POST /api/notifications/read-all': 'the same',
  'DELETE /api/notifications/{notificationId}': 'and wants to see it no more; others keep theirs'
}

/** What is refused before it is read is not recorded: anonymous callers could write without limit. */
const refusedUnread: Readonly<Record<string, string>> = {
  'POST /api/auth/setup': 'the platform of the test has been set up'
}

/** The kernel's own. What is turned off is what nothing else needs. */
const kernelCalls: HappyCalls = {
  'POST /api/plugins/{pluginId}/disable': () => ({
    ids: { pluginId: 'audit-logs' },
    body: { cascade: true }
  }),
  'POST /api/plugins/{pluginId}/enable': () => ({ ids: { pluginId: 'audit-logs' } }),
  // Only what is off can be purged.
  'POST /api/plugins/{pluginId}/purge': async ({ admin }) => {
    await admin.post('/api/plugins/api-reference/disable', { cascade: true })
    return { ids: { pluginId: 'api-reference' } }
  },
  'POST /api/plugins/{pluginId}/reload': () => ({ ids: { pluginId: 'audit-logs' } }),
  'PUT /api/plugins/{pluginId}/config': () => ({ ids: { pluginId: 'audit-logs' }, body: {} })
}

/** By no operation: when a session has ended that an earlier one has made. */
const writtenLater = 'terminal.session.ended'

const nameOf = ({ method, url }: RouteRecord): string => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`

test('every operation that changes something writes one audit record, with its action, its resource and the id', async t => {
  if (!(await requireEngine(t))) return
  const k: TestKernel = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const happy = new Map<string, Happy>([['kernel', { calls: kernelCalls, fixtures: undefined }]])
  for (const id of order(k)) happy.set(id, await happyOf(id))
  const fixture = await fixtureFor(k, happy)
  const records = k
    .routes()
    .map(({ record }) => record)
    .filter(record => record.method !== 'GET' || record.audit !== undefined)
    // What takes the fixture away comes last.
    .sort(
      (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE') || b.url.length - a.url.length
    )
  for (const record of records) {
    const name = nameOf(record)
    const { audit, plugin } = record
    const make = happy.get(plugin)?.calls[name]
    if (make === undefined && record.method !== 'GET') {
      t.fail(`${name} has no happy call in plugins/${plugin}/test/happy-calls.ts`)
      continue
    }
    const made = (await make?.(fixture)) ?? {}
    await k.query('delete from kernel.audit_log')
    const { fault, answer } = await call(fixture, record.method, record.url, made)
    if (fault !== null) {
      t.fail(fault)
      continue
    }
    const rows = await k.query<Row>(
      'select action, resource_type, resource_id, user_id from kernel.audit_log where action <> $1',
      [writtenLater]
    )
    if (audit === undefined) {
      t.ok(name in silent, `${name} declares what it writes to the audit log`)
      t.equal(rows.length, 0, `${name} writes nothing`)
      continue
    }
    const isRefused = answer.status >= 400
    if (name in refusedUnread) {
      t.same([isRefused, rows], [true, []], `${name} is refused without a record`)
      continue
    }
    const ids: Readonly<Record<string, string>> = { ...fixture.ids, ...made.ids }
    const id =
      audit.id === undefined || isRefused
        ? undefined
        : 'param' in audit.id
          ? ids[audit.id.param]
          : audit.id.result.split('.').reduce((value: any, key) => value?.[key], answer.body)
    const possible = isRefused
      ? [audit.failure ?? audit.action]
      : [audit.action, ...(audit.otherwise === undefined ? [] : [audit.otherwise.action])]
    t.match(rows, [{ resource_type: audit.resource }], `${name} writes one record`)
    t.ok(
      possible.includes(rows[0]?.action ?? ''),
      `${name} is called ${possible.join(' or ')}: ${rows[0]?.action ?? ''}`
    )
    // An answer may hide the id its handler returned: then any id will do.
    if (audit.id !== undefined && !isRefused)
      t.match(rows[0]?.resource_id, id ?? /^[0-9a-f-]{36}$/, `${name} says of which ${audit.resource}`)
    if (audit.resource === 'user' && !isRefused && record.access.kind !== 'public')
      t.match(rows[0]?.resource_id, /^[0-9a-f-]{36}$/, `${name} says of which user`)
    if (record.access.kind !== 'public') t.match(rows[0]?.user_id, /^[0-9a-f-]{36}$/, `${name} says who`)
  }
  t.same(await removeRound(fixture), [], 'nothing of it is left')
})

test('every action is called what the contract calls it, or is among those it does not name', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const declared = new Map<string, string>()
  for (const { record } of k.routes()) {
    for (const action of [record.audit?.action, record.audit?.failure, record.audit?.otherwise?.action])
      if (action !== undefined) declared.set(action, nameOf(record))
  }
  for (const [action, name] of declared)
    t.ok(action in actions, `${action} (${name}) is in test/contract/audit-actions.ts`)
  t.ok(declared.size > 30)
})
