import { test } from 'tap'
import { problems } from '../problems.js'
import { decideRegistry } from '../source.js'

const fault = (field: string) => ({ status: 400, code: 'E_APPLICATION_INVALID', details: { field } })

const none = {
  source_image: 'registry.example.com/a:1',
  registry_username: null,
  has_registry_credentials: false
}
const stored = { ...none, registry_username: 'ann', has_registry_credentials: true }
const elsewhere = 'evil.example.com/a:1'

test('a password comes with its user name, or with the one that is stored', async t => {
  t.same(decideRegistry(none, undefined, { registry_username: ' ann ', registry_password: ' pw ' }), {
    kind: 'set',
    username: 'ann',
    password: ' pw '
  })
  t.same(decideRegistry(stored, undefined, { registry_password: 'pw' }), {
    kind: 'set',
    username: 'ann',
    password: 'pw'
  })
  t.same(decideRegistry(none, undefined, { registry_username: 'ann', registry_password: ' ' }), {
    kind: 'set',
    username: 'ann',
    password: ' '
  })
  const nameless = [undefined, null, '', ' ']
  for (const name of nameless)
    t.throws(
      () => decideRegistry(none, undefined, { registry_username: name, registry_password: 'pw' }),
      fault('registry_username'),
      JSON.stringify(name)
    )
  for (const name of nameless.slice(1))
    t.throws(
      () => decideRegistry(stored, undefined, { registry_username: name, registry_password: 'pw' }),
      fault('registry_username'),
      `${JSON.stringify(name)} instead of the stored one`
    )
})

test('null for either, or an empty user name, drops both', async t => {
  for (const current of [stored, none])
    for (const fields of [
      { registry_password: null },
      { registry_username: null },
      { registry_username: '' },
      { registry_username: ' ' },
      { registry_username: 'bob', registry_password: null },
      { registry_username: null, registry_password: '' }
    ])
      t.same(decideRegistry(current, elsewhere, fields), { kind: 'drop' }, JSON.stringify(fields))
})

test('what is not given is kept, and an empty password keeps the stored one', async t => {
  for (const current of [stored, none])
    for (const fields of [{}, { registry_password: '' }])
      t.same(decideRegistry(current, undefined, fields), { kind: 'keep' }, JSON.stringify(fields))
  for (const fields of [{ registry_username: ' bob ' }, { registry_username: 'bob', registry_password: '' }])
    t.same(decideRegistry(stored, undefined, fields), { kind: 'rename', username: 'bob' })
  for (const fields of [{ registry_username: 'bob' }, { registry_username: 'bob', registry_password: '' }])
    t.throws(() => decideRegistry(none, undefined, fields), fault('registry_password'))
})

test('a stored password is never kept for another registry', async t => {
  const moved = {
    status: 400,
    code: 'E_APPLICATION_CREDENTIALS_NEEDED',
    details: { field: 'registry_password' }
  }
  for (const fields of [{}, { registry_password: '' }, { registry_username: 'bob' }])
    t.throws(() => decideRegistry(stored, elsewhere, fields), moved, JSON.stringify(fields))
  t.throws(() => decideRegistry({ ...stored, source_image: null }, elsewhere, {}), moved)
  t.same(decideRegistry(stored, 'registry.example.com/b:2', {}), { kind: 'keep' })
  t.same(decideRegistry(none, elsewhere, {}), { kind: 'keep' }, 'there is none')
  t.same(decideRegistry(stored, elsewhere, { registry_password: 'fresh' }), {
    kind: 'set',
    username: 'ann',
    password: 'fresh'
  })
})

test('what is not there is a 404, what is in the way a 409, and what is off a 503', async t => {
  for (const [problem, status] of [
    [problems.notFound({ applicationId: 'a' }), 404],
    [problems.projectGone({ projectId: 'p' }), 404],
    [problems.noWebhookSecret(), 404],
    [problems.hasPreviews(), 409],
    [problems.busy({ reason: 'a deployment is under way' }), 409],
    [problems.noContainer({ slug: 'web' }), 409],
    [problems.containersOff(), 503],
    [problems.imagesOff(), 503],
    [problems.sameType({ type: 'git' }), 400],
    [problems.invalidBranch(), 400]
  ] as const)
    t.equal(problem.status, status, problem.message)
})
