import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Answer, ApiError, type Body, type BusbarClient, createClient } from 'busbar/client'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { generateSync } from 'otplib'
import { test } from 'tap'
import { describeBuiltIns } from '../../scripts/client/describe.js'
import { generateOperations, typeText } from '../../scripts/client/generate.js'

const root = join(import.meta.dirname, '../..')
let k: TestKernel
let busbar: BusbarClient

test('the types in the repository are those of the operations as they are declared', async t => {
  const written = readFileSync(join(root, 'sdk/client/operations.generated.ts'), 'utf8')
  t.equal(written, generateOperations(await describeBuiltIns(root)), 'npm run client writes them anew')
})

test('what is described without starting anything is what the platform serves', async t => {
  k = await createTestKernel()
  const served = (await k.as.anonymous().get('/api/openapi.json')).body
  const { paths } = await describeBuiltIns(root)
  for (const socket of Object.keys(served.paths).filter(path => path.startsWith('/api/ws')))
    delete served.paths[socket]
  t.same(JSON.parse(JSON.stringify(paths)), served.paths)
})

test('a schema becomes the type of what it allows', t => {
  const types: ReadonlyArray<readonly [object, string]> = [
    [{ type: 'string', format: 'uuid' }, 'string'],
    [{ type: ['integer', 'null'] }, 'number | null'],
    [{ enum: ['a', 'b'], type: 'string' }, '"a" | "b"'],
    [{ type: 'array', items: { type: 'string' } }, 'string[]'],
    [{ type: 'array', items: { enum: ['a', 'b'] } }, 'Array<"a" | "b">'],
    [
      { type: 'object', properties: { a: { type: 'boolean' }, 'b-c': {} }, 'x-required': ['a'] },
      '{\n  a: boolean\n  "b-c"?: unknown\n}'
    ],
    [{ type: 'object', patternProperties: { '.*': { type: 'number' } } }, 'Record<string, number>'],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 'string | null'],
    [{ const: 5 }, '5'],
    [{ $ref: '#/components/schemas/Note' }, "Schemas['Note']"],
    [{ type: 'array', items: { $ref: '#/components/schemas/Note' } }, "Schemas['Note'][]"],
    [{ anyOf: [{ $ref: '#/components/schemas/Note' }, { type: 'null' }] }, "Schemas['Note'] | null"],
    [
      { type: 'object', properties: { a: { type: 'string', description: 'Ends a comment: */' } } },
      '{\n  /** Ends a comment: * / */\n  a?: string\n}'
    ],
    [{}, 'unknown']
  ]
  for (const [schema, type] of types) t.equal(typeText(schema), type)
  t.end()
})

test('somebody signs in, and what they change carries the CSRF token by itself', async t => {
  busbar = createClient({ url: k.url })
  const { email, password } = await k.user('admin')
  const person = await busbar.signIn({ email, password })
  const me = await person.get('/api/auth/me')
  t.match(me, { email, role: 'admin' })
  const { token } = await person.post('/api/tokens', {
    body: { name: 'client', scopes: ['write'], expires_in_days: 1 }
  })
  busbar = busbar.withToken(token)
  t.equal((await busbar.get('/api/auth/me')).id, me.id)
  await person.post('/api/auth/logout')
  await t.rejects(person.get('/api/auth/me'), { status: 401, code: 'E_UNAUTHORIZED' }, 'the cookies are gone')
})

test('an account with a second factor asks for its code', async t => {
  const { email, password } = await k.user('careful')
  const person = await busbar.signIn({ email, password })
  const { secret } = await person.post('/api/auth/totp/enroll', { body: { password } })
  const { recovery_codes: codes } = await person.post('/api/auth/totp/enroll/verify', {
    body: { code: generateSync({ secret }) }
  })
  t.equal((await person.get('/api/auth/totp')).enabled, true, 'new cookies are kept')
  t.ok(codes.length > 0)
  await t.rejects(busbar.signIn({ email, password }), { code: 'E_SECOND_FACTOR_REQUIRED' })
  await t.rejects(busbar.signIn({ email, password, code: '000000' }), { message: /answered 401/ })
})

test('an operation is called by its path, with parameters, query and body of its own types', async t => {
  const body: Body<'POST /api/projects'> = { name: 'Shop', slug: 'shop' }
  const project: Answer<'POST /api/projects'> = await busbar.post('/api/projects', { body })
  t.match(await busbar.get('/api/projects/{projectId}', { params: { projectId: project.id } }), {
    slug: 'shop'
  })
  t.equal(
    (
      await busbar.put('/api/projects/{projectId}', {
        params: { projectId: project.id },
        body: { name: 'Store' }
      })
    ).name,
    'Store'
  )
  t.match(await busbar.get('/api/audit-logs', { query: { action: 'create_project', limit: '1' } }), {
    total: 1,
    items: [{ resource_id: project.id }]
  })
  // @ts-expect-error: there is no such operation
  const nowhere = busbar.get('/api/nowhere')
  await t.rejects(nowhere, { code: 'E_NOT_FOUND' })
  // @ts-expect-error: the path needs an id
  const nobody = busbar.get('/api/projects/{projectId}')
  await t.rejects(nobody, /needs params.projectId/)
  // @ts-expect-error: the slug is required
  const half = busbar.post('/api/projects', { body: { name: 'a' } })
  await t.rejects(half, { code: 'E_BODY_INVALID', message: /slug is required/ })
  // @ts-expect-error: so is the body
  const empty = busbar.post('/api/projects')
  await t.rejects(empty, { code: 'E_BODY_INVALID' })
})

test('an answer that is no success is thrown with its code, its sentence and what to do', async t => {
  const error = await busbar
    .post('/api/projects', { body: { name: 'Shop', slug: 'shop' } })
    .catch((thrown: unknown) => thrown)
  t.ok(error instanceof ApiError)
  t.match(error, {
    status: 409,
    operation: 'POST /api/projects',
    error: /shop/,
    requestId: /.+/,
    message: /^POST \/api\/projects answered 409 E_/
  })
  k.resetRateLimits()
  const impatient = createClient({ ...busbar.options, maxRetryWaitMs: 0 })
  const calls = await Promise.all(
    Array.from(
      { length: 101 },
      async () => await impatient.get('/api/projects').catch((thrown: unknown) => thrown)
    )
  )
  t.match(
    calls.filter(answer => answer instanceof ApiError),
    [{ status: 429, code: 'E_RATE_LIMITED', error: /^rate limit exceeded/, retryAfterSeconds: Number }]
  )
  k.resetRateLimits()
})

test('a list is read page by page, each item once', async t => {
  const { id } = await busbar.post('/api/projects', { body: { name: 'Many', slug: 'many' } })
  await k.query(`
    insert into kernel.audit_log (id, action, resource_type, details, created_at)
    select gen_random_uuid(), 'paged', 'widget', '{}', now() from generate_series(1, 250)`)
  const seen = new Set<string>()
  for await (const record of busbar.each('/api/audit-logs', { query: { action: 'paged' } }))
    seen.add(record.id)
  t.equal(seen.size, 250)
  const names: string[] = []
  for await (const project of busbar.each('/api/projects')) names.push(project.name)
  t.same(names.sort(), ['Many', 'Store'])
  t.equal(
    (await busbar.fetch('GET', '/api/projects/{projectId}', { params: { projectId: id } })).headers.get(
      'x-ratelimit-limit'
    ),
    '100'
  )
})

test('a file or a stream is the response itself', async t => {
  const csv = await busbar.get('/api/audit-logs/export', { query: { action: 'paged' } })
  t.match(csv.headers.get('content-disposition'), /audit-log/)
  t.equal((await csv.text()).split('\r\n').length, 252)
})

test('the same idempotency key gets the same answer', async t => {
  const ask = async () =>
    await busbar.post('/api/projects', { body: { name: 'Once', slug: 'once' }, idempotencyKey: 'once' })
  t.equal((await ask()).id, (await ask()).id)
})

test('the platform stops', async () => {
  await k.close()
})
