import { randomBytes } from 'node:crypto'
import { createTestKernel, type HappyCalls, type HappyFixture, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { happyCalls as account } from '../../plugins/account/test/happy-calls.js'
import { happyCalls as tokens } from '../../plugins/tokens/test/happy-calls.js'
import { happyCalls as users } from '../../plugins/users/test/happy-calls.js'
import { fields } from './extensions.js'
import { type Described, described, faultsOf, resolved } from './shape.js'

const groups = ['Profile', 'Personal Access Tokens', 'Users (Admin)']
const ours = described.filter(({ group, path }) => groups.includes(group) || path.startsWith('/api/auth/'))
const nameOf = ({ method, path }: Described): string => `${method} ${path}`

/** Fields beyond the contract. */
const more: Readonly<Record<string, readonly string[]>> = {
  // Where no mail is sent, somebody must be given the link.
  'POST /api/users/invite': ['link']
}

/** What answers otherwise in a happy call than the contract's success, and why. */
const otherwise: Readonly<Record<string, number>> = {
  // The platform of the test is set up.
  'POST /api/auth/setup': 409
}

const recordOf = (k: TestKernel, { method, path }: Described) =>
  k.routes().find(({ record }) => record.method === method && record.url.replace(/:(\w+)/g, '{$1}') === path)
    ?.record

test('a shape is told from another', async t => {
  t.same(faultsOf({ a: 1, b: [null, 'x'] }, { a: 'integer', b: '[string|null]' }), [])
  t.same(faultsOf({ a: '1', c: 2 }, { a: 'integer', b: 'string' }), [
    'body.a is "1", not integer',
    'body.b is missing',
    'body.c is not in the contract'
  ])
  t.same(faultsOf(null, '@LoginResult|null'), [])
  t.same(faultsOf('2026-01-01', 'date-time'), ['body is "2026-01-01", not date-time'])
  t.same(faultsOf([{ status: 1 }], [{ status: 'string' }] as never), ['body is no object'])
})

test('every operation of the identity groups is served and answers in the shape of the contract', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const project = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
  const unique = (word: string): string => `${word}-${randomBytes(4).toString('hex')}`
  const fixture: HappyFixture = { k, admin, unique, ids: { projectId: project.body.id as string } }
  const calls: HappyCalls = { ...account, ...tokens, ...users }
  // So that no list is empty.
  await admin.post('/api/tokens', {
    name: 'ci',
    scopes: ['read'],
    expires_in_days: 7,
    project_ids: [project.body.id]
  })
  await admin.post('/api/users/invite', { email: 'eve@example.com', role: 'member' })

  t.ok(ours.length >= 25, `${ours.length} operations`)
  for (const operation of ours) {
    const name = nameOf(operation)
    k.resetRateLimits()
    const made = (await calls[name]?.(fixture)) ?? {}
    const ids = { ...fixture.ids, ...made.ids }
    const path = operation.path.replace(
      /\{(\w+)\}/g,
      (_, param: string) => ids[param as keyof typeof ids] ?? `no-${param}`
    )
    const answer = await (made.as ?? admin).send(operation.method, path + (made.query ?? ''), {
      body: made.body,
      headers: made.headers
    })
    const [status = '', shape = 'empty'] = Object.entries(operation.responses)[0] ?? []
    t.equal(
      answer.status,
      otherwise[name] ?? Number(status),
      `${name} answers ${status}: ${JSON.stringify(answer.body)}`
    )
    if (answer.status === Number(status))
      t.same(
        faultsOf(answer.body, shape, [...(more[name] ?? []), ...Object.keys(fields[name] ?? {})]),
        [],
        name
      )
  }
})

test('every operation of the identity groups takes the fields of the contract, and no others', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  for (const operation of ours) {
    const record = recordOf(k, operation)
    t.ok(record, nameOf(operation))
    const taken = Object.keys((record?.schema.body?.properties ?? {}) as object).sort()
    const named = typeof operation.body === 'string' ? fields[operation.body.replace('@', '')] : undefined
    const wanted =
      operation.body === undefined
        ? []
        : [...Object.keys(resolved(operation.body)), ...Object.keys(named ?? {})].sort()
    t.same(taken, wanted, `the body of ${nameOf(operation)}`)
    const query = Object.keys((record?.schema.query?.properties ?? {}) as object)
    t.same(
      Object.keys(operation.query ?? {}).filter(name => !query.includes(name)),
      [],
      `the query of ${nameOf(operation)}`
    )
  }
})

test('an answer declares what it holds: nothing beyond the contract can slip out of these operations', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  for (const operation of ours) {
    const responses = recordOf(k, operation)?.schema.response ?? {}
    for (const status of Object.keys(operation.responses))
      t.ok(status in responses, `${nameOf(operation)} declares ${status}`)
  }
})
