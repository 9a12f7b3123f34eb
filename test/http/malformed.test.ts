import { identity } from 'busbar/api/identity'
import {
  createTestKernel,
  type TestAnswer,
  TestClient,
  type TestKernel,
  type TestRequest
} from 'busbar/sdk/testing'
import { test } from 'tap'
import type { RouteRecord } from '../../core/declarations/records.js'
import { rotatingSample } from '../../scripts/rotating-sample.mjs'

const nul = 'a\u0000b'
const deep = (levels: number, open: string, close: string): string =>
  open.repeat(levels) + close.repeat(levels)

const values: readonly unknown[] = [
  null,
  5,
  -1,
  1.5,
  1e308,
  true,
  '',
  'x',
  nul,
  '\ud800',
  '\u202e\u0000\ufffd',
  'x'.repeat(70_000),
  [],
  {},
  [null],
  [{}],
  { a: { b: [] } },
  "'; drop table kernel.plugin; --",
  '../../etc/passwd',
  '$(id)',
  '-oProxyCommand=id',
  '00000000-0000-0000-0000-000000000000'
]
const shown = (value: unknown): string => JSON.stringify(value).slice(0, 20)
/** Of one field: a product of all fields of all operations, which grows. All of them stand in all fields at once, too. */
const chosen = rotatingSample('malformed values of one field', values.map(shown), {
  always: [null, 5, '', nul, 'x'.repeat(70_000), [], {}].map(shown),
  others: 5
})
const bodies: ReadonlyArray<string | Buffer> = [
  '',
  ' ',
  'null',
  '[]',
  '"x"',
  '5',
  'true',
  '{',
  '{"a":',
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{}}}',
  deep(20_000, '[', ']'),
  deep(5_000, '{"a":', '}'),
  Buffer.from([0xff, 0xfe, 0x00]),
  Buffer.alloc(1_500_000, 0x20)
]
const types = [
  'text/plain',
  'application/xml',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  '',
  'x'.repeat(500)
]
const queries = ['', 'x', '-1', 'NaN', '%00', '%ff', '%', '1e99', 'x'.repeat(4000), '2026-13-45', "' or 1=1"]
const ids = [
  'x',
  'ABCDEF12-0000-0000-0000-000000000000',
  '%00',
  '..%2f..',
  '%ff',
  'x'.repeat(1000),
  '00000000-0000-0000-0000-000000000000'
]

/** Answers that are no fault of ours: what was asked for needs an engine, and there is none here. */
const honest = new Set(['E_ENGINE_UNREACHABLE', 'E_PLUGIN_OFF'])

let k: TestKernel
let fixture: Record<string, string>
const faults: string[] = []
const seen = new Map<string, number>()
let calls = 0
let people = 0

/** For operations on accounts one of its own: the abuse of passwords locks them, as it should, and some end sessions. */
const signIn = async (): Promise<TestClient> => {
  const accounts = k.service(identity)
  const email = `admin-${people++}@example.com`
  const password = 'correct horse battery'
  await accounts.createUser({ email, password, role: 'admin' })
  const outcome = await accounts.login(
    { email, password },
    { ip: `10.0.0.${people % 250}`, userAgent: 'test' }
  )
  if (outcome.kind !== 'signedIn') throw new Error('nobody is signed in')
  const { cookies } = outcome.grant
  return new TestClient(k.url, {
    cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '),
    'x-csrf-token': cookies.find(({ name }) => name === 'csrf_token')?.value ?? ''
  })
}

async function shout(
  client: TestClient,
  what: string,
  method: string,
  path: string,
  request: TestRequest = {}
): Promise<void> {
  calls++
  k.resetRateLimits()
  const timeout = new Promise<'hangs'>(resolve => setTimeout(resolve, 20_000, 'hangs').unref())
  const answer: TestAnswer | 'hangs' | Error = await Promise.race([
    client.send(method, path, request).catch((error: Error) => error),
    timeout
  ])
  // A server may close the connection on a body it refuses before it has read it all.
  if (answer instanceof Error) {
    if (!/ECONNRESET|EPIPE|socket hang up|parse|Invalid|ERR_/i.test(`${answer.message} ${answer.name}`))
      faults.push(`${what}: ${answer.message}`)
    return
  }
  if (answer === 'hangs') {
    faults.push(`${what}: no answer`)
    return
  }
  const text = JSON.stringify(answer.body) ?? ''
  seen.set(`${answer.status}`, (seen.get(`${answer.status}`) ?? 0) + 1)
  if (answer.status >= 500 && !honest.has(answer.body?.code as string))
    faults.push(`${what}: ${answer.status} ${text.slice(0, 150)}`)
  if (/\bat .*\.(js|ts):\d+/.test(text)) faults.push(`${what}: a stack trace`)
  if (answer.status >= 400 && answer.status !== 429 && typeof answer.body?.error !== 'string')
    faults.push(`${what}: ${answer.status} without an error: ${text.slice(0, 80)}`)
}

const pathOf = (url: string, replaced: Record<string, string> = {}): string =>
  url.replace(
    /:(\w+)/g,
    (_, name: string) => replaced[name] ?? fixture[name] ?? '00000000-0000-0000-0000-000000000000'
  )

const isDangerous = ({ method, url }: RouteRecord): boolean =>
  method === 'DELETE' && /:(projectId|applicationId)$/.test(url)

let shared: Promise<TestClient> | undefined
const sharedAdmin = async (): Promise<TestClient> => {
  shared ??= signIn()
  return await shared
}

async function abuse(record: RouteRecord): Promise<void> {
  const { method, url, schema, params } = record
  const client =
    record.access.kind === 'public'
      ? k.as.anonymous()
      : /^\/api\/(?:account|auth|sessions|tokens|users)\b/.test(url)
        ? await signIn()
        : await sharedAdmin()
  const name = `${method} ${url}`
  for (const param of params)
    for (const id of ids)
      await shout(client, `${name} with ${param} ${id.slice(0, 20)}`, method, pathOf(url, { [param]: id }))
  for (const query of Object.keys((schema.query?.properties ?? {}) as object)) {
    for (const value of queries)
      await shout(
        client,
        `${name}?${query}=${value.slice(0, 20)}`,
        method,
        `${pathOf(url)}?${query}=${value}`
      )
    await shout(
      client,
      `${name} with ${query} twice`,
      method,
      `${pathOf(url)}?${query}=1&${query}=2&${query}[]=3`
    )
  }
  if (method === 'GET' || isDangerous(record)) return
  for (const body of bodies)
    await shout(client, `${name} with body ${String(body).slice(0, 12)}`, method, pathOf(url), {
      body,
      headers: { 'content-type': 'application/json' }
    })
  for (const type of types)
    await shout(client, `${name} as ${type.slice(0, 20)}`, method, pathOf(url), {
      body: '<x/>',
      headers: { 'content-type': type }
    })
  const properties = (schema.body?.properties ?? {}) as Record<string, unknown>
  for (const property of Object.keys(properties)) {
    for (const value of values.filter(one => chosen.has(shown(one))))
      await shout(client, `${name} with ${property} ${shown(value)}`, method, pathOf(url), {
        body: { [property]: value }
      })
  }
  // Everything at once, of one kind: required fields are there, so that the handler itself is reached.
  for (const value of values)
    await shout(client, `${name} with all ${shown(value)}`, method, pathOf(url), {
      body: Object.fromEntries(Object.keys(properties).map(key => [key, value]))
    })
}

test('no malformed id, query, header or body of any operation gets a 5xx, a stack trace or no answer', async t => {
  k = await createTestKernel({
    environment: { DOCKER_HOST: 'unix:///nowhere.sock', GIT_PRIVATE_HOSTS: 'deny' }
  })
  t.teardown(async () => {
    await k.close()
  })
  const admin = await k.as.session()
  const projectId = (await admin.post('/api/projects', { name: 'Fuzz', slug: 'fuzz' })).body.id as string
  const applicationId = (
    await admin.post(`/api/projects/${projectId}/applications`, {
      name: 'fuzz',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab'
    })
  ).body.id as string
  const deploymentId = (await admin.post(`/api/projects/${projectId}/applications/${applicationId}/deploy`))
    .body.id as string
  fixture = { projectId, applicationId, deploymentId, pluginId: 'nowhere', token: 'nothing' }
  for (const { record } of k.routes()) await abuse(record)
  t.same(faults, [], `${calls} malformed requests`)
  // Or the abuse would stop at the door and prove nothing.
  t.ok((seen.get('400') ?? 0) > calls / 3, JSON.stringify([...seen]))
  t.ok((seen.get('401') ?? 0) < calls / 10)
})
