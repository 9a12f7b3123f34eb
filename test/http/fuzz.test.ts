/**
 * Every operation, asked with values made from its own schemas and with what they forbid.
 * FUZZ_SECONDS (20) is how long; FUZZ_SEED repeats a run that found something.
 */
import {
  createTestKernel,
  type TestAnswer,
  type TestClient,
  type TestKernel,
  TestSocket
} from 'busbar/sdk/testing'
import fc from 'fast-check'
import { test } from 'tap'
import type { RouteRecord } from '../../core/declarations/records.js'
import { takeAwayFromEngine } from '../../lab/engine.js'
import { around, contentTypes, spoiled, urlText } from './fuzz-values.js'
import { newAdmins } from './new-admin.js'

takeAwayFromEngine()
const seconds = Number(process.env.FUZZ_SECONDS ?? 20)
const seed = Number(process.env.FUZZ_SEED ?? 20_260_101)
const only = process.env.FUZZ_ONLY

let k: TestKernel
let fixture: Record<string, string>
const seen = new Map<string, number>()
const complaints: string[] = []
/** For operations on accounts, of which some end sessions. */
const signIn = newAdmins(() => k)

interface Call {
  readonly path: string
  readonly body: string | Buffer | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** What deletes the ground the others stand on gets ids that do not exist. */
const isDangerous = ({ method, url }: RouteRecord): boolean =>
  method === 'DELETE' && /:(projectId|applicationId|databaseId)$/.test(url)

function callsTo(record: RouteRecord): fc.Arbitrary<Call> {
  const { url, params, schema, method } = record
  const ids = fc.tuple(
    ...params.map(param => {
      const known = isDangerous(record) ? undefined : fixture[param]
      return known === undefined
        ? urlText
        : fc.oneof({ weight: 6, arbitrary: fc.constant(known) }, { weight: 1, arbitrary: urlText })
    })
  )
  const queries = Object.entries(
    (schema.query?.properties ?? {}) as Record<string, Record<string, unknown>>
  ).map(([name, property]) =>
    fc
      .option(
        fc.oneof(
          {
            weight: 2,
            arbitrary: around(property).map(value =>
              encodeURIComponent(
                wellFormed(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).slice(0, 3000)
              )
            )
          },
          { weight: 1, arbitrary: urlText }
        ),
        { nil: undefined }
      )
      .map(value => (value === undefined ? '' : `${name}=${value}`))
  )
  const body =
    method === 'GET'
      ? fc.constant(undefined)
      : schema.body === undefined
        ? fc.option(fc.jsonValue().chain(spoiled), { nil: undefined })
        : around(schema.body as never).chain(spoiled)
  return fc
    .record({
      ids,
      query: fc.tuple(...queries),
      body,
      type: contentTypes,
      key: fc.option(fc.string({ unit: 'grapheme-ascii', maxLength: 20 }), { nil: undefined })
    })
    .map(({ ids: values, query, body: sent, type, key }) => {
      let at = 0
      const path = url.replace(/:\w+/g, () => String(values[at++]))
      const asked = query.filter(part => part !== '').join('&')
      return {
        path: asked === '' ? path : `${path}?${asked}`,
        body: sent,
        headers: {
          ...(sent === undefined ? {} : { 'content-type': type }),
          ...(key === undefined || !record.idempotent ? {} : { 'idempotency-key': key })
        }
      }
    })
}

const wellFormed = (text: string): string => text.replace(/[\ud800-\udfff]/g, '')

/** What is about a request as a whole, or about what it is asked of. */
const aboutNoField =
  /^(?:the body (?:is not valid JSON|must not be empty)|the address must not contain NUL|the path is not valid percent-encoding|Idempotency-Key must be|application \S+ runs an image|no remote is enabled)/

/** What is wrong with an answer; null when nothing is. */
function faultOf(answer: TestAnswer): string | null {
  const text = typeof answer.body === 'string' ? answer.body : (JSON.stringify(answer.body) ?? '')
  // What lies beyond the platform may fail, and is then named; the platform itself may not.
  const isOurs =
    answer.status === 500 ||
    (answer.status > 500 &&
      ['E_INTERNAL', 'E_TIMEOUT', undefined].includes(answer.body?.code as string | undefined))
  if (isOurs && answer.status !== 503) return `${answer.status} ${text.slice(0, 200)}`
  if (answer.status === 503 && answer.body?.code === 'E_TIMEOUT') return 'the handler did not end'
  if (
    /\bat .{1,200}\.(js|ts):\d+|node_modules|[a-z_]+\.[a-z_]+ violates|pg_|SQLSTATE/.test(text) &&
    answer.status >= 400
  )
    return `it tells of the inside: ${text.slice(0, 200)}`
  if (answer.status >= 400 && answer.status !== 429 && typeof answer.body?.error !== 'string')
    return `${answer.status} without an error: ${text.slice(0, 100)}`
  if (answer.status === 400 && typeof answer.body.field !== 'string' && !aboutNoField.test(answer.body.error))
    return `it names no field: ${text.slice(0, 200)}`
  return null
}

async function send(client: TestClient, method: string, call: Call): Promise<string | null> {
  k.resetRateLimits()
  const late = new Promise<'late'>(resolve => setTimeout(resolve, 40_000, 'late').unref())
  const answer = await Promise.race([
    client.send(method, call.path, { body: call.body, headers: call.headers }).catch((error: Error) => error),
    late
  ])
  if (answer === 'late') return 'no answer in 40 seconds'
  if (answer instanceof Error) {
    // The client refuses to send some of it, and a refused body may end the connection.
    return /ECONNRESET|EPIPE|socket hang up|ERR_|Invalid|unescaped/.test(`${answer.message} ${answer.name}`)
      ? null
      : answer.message
  }
  seen.set(String(answer.status), (seen.get(String(answer.status)) ?? 0) + 1)
  return faultOf(answer)
}

test('no value that its schema allows or forbids gets a 5xx, a word of the inside or no answer from any operation', async t => {
  k = await createTestKernel({
    environment: { DOCKER_HOST: 'unix:///nowhere.sock', GIT_PRIVATE_HOSTS: 'deny' },
    onLog: line => {
      if (line.includes('"level":60') || line.includes('unhandled')) complaints.push(line)
    }
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
  fixture = {
    projectId,
    applicationId,
    deploymentId,
    userId: (await k.user('victim')).id,
    pluginId: 'nowhere'
  }
  const records = k
    .routes()
    .map(({ record }) => record)
    // A stream that is followed does not end.
    .filter(
      ({ produces, method, url }) =>
        produces !== 'text/event-stream' && (only === undefined || `${method} ${url}`.includes(only))
    )
  t.comment(`FUZZ_SEED=${seed} FUZZ_SECONDS=${seconds}, ${records.length} operations`)
  const shared = await signIn()
  const ends = performance.now() + seconds * 1000
  for (const [at, record] of records.entries()) {
    const { method, url, access } = record
    const client =
      access.kind === 'public'
        ? k.as.anonymous()
        : /^\/api\/(auth|users|tokens)\b/.test(url)
          ? await signIn()
          : shared
    // What the operations before have not used of their time is for those to come.
    const budget = Math.max(50, (ends - performance.now()) / (records.length - at))
    const result = await fc.check(
      fc.asyncProperty(callsTo(record), async call => {
        const fault = await send(client, method, call)
        if (fault !== null) throw new Error(fault)
      }),
      {
        seed,
        numRuns: 100_000,
        interruptAfterTimeLimit: budget,
        markInterruptAsFailure: false,
        endOnFailure: process.env.FUZZ_SHRINK === undefined
      }
    )
    const [call] = result.counterexample ?? []
    if (call !== undefined) {
      t.fail(`${method} ${url}: ${String((result.errorInstance as Error | null)?.message)}`, {
        seed,
        path: call.path.slice(0, 300),
        body: String(call.body).slice(0, 600),
        headers: call.headers
      })
    }
  }
  const calls = [...seen.values()].reduce((a, b) => a + b, 0)
  t.comment(`${calls} requests: ${JSON.stringify(Object.fromEntries([...seen].sort()))}`)
  t.same(complaints, [], 'nothing went wrong behind the answers')
  t.match(await k.as.anonymous().get('/healthz'), { status: 200, body: { healthy: true } })
  const after = await signIn()
  k.resetRateLimits()
  t.equal(
    (await after.get(`/api/projects/${projectId}/applications/${applicationId}`)).status,
    200,
    'the platform serves as before'
  )
  if (only === undefined) {
    t.ok((seen.get('200') ?? 0) + (seen.get('201') ?? 0) > calls / 20, 'and handlers were reached')
    t.ok((seen.get('400') ?? 0) > calls / 20)
  }
})

test("no frame takes the hub down, or anybody else's subscription", async t => {
  k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const admin = await k.as.session()
  const bystander = await TestSocket.open(admin)
  bystander.subscribe('platform')
  let socket = await TestSocket.open(admin)
  let opened = 1
  const frame = fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .record({
          action: fc.oneof(fc.constantFrom('subscribe', 'unsubscribe', 'publish', ''), fc.jsonValue()),
          channel: fc.oneof(
            fc.constantFrom(
              'platform',
              'metrics:host',
              'build-logs:',
              'build-logs:x',
              'container-status:00000000-0000-0000-0000-000000000000',
              '__proto__',
              ':',
              'x:'.repeat(500)
            ),
            fc.jsonValue({ maxDepth: 3 })
          )
        })
        .map(value => JSON.stringify(value))
    },
    fc.jsonValue().map(value => JSON.stringify(value)),
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.constant('x'.repeat(5_000))
  )
  const late = performance.now() + Math.min(seconds, 60) * 200
  for (const text of fc.sample(frame, { seed, numRuns: 2_000 })) {
    if (performance.now() > late) break
    if (socket.closeCode !== undefined) {
      t.ok([1006, 1007, 1009].includes(socket.closeCode), `closed with ${socket.closeCode}`)
      k.resetRateLimits()
      socket = await TestSocket.open(admin)
      opened++
    }
    socket.send(text)
    // Answered in order, unless the frame has closed the connection.
    const marker = `nowhere:${opened}:${text.length}`
    socket.subscribe(marker)
    for (
      let n = 0;
      n < 2_000 && socket.closeCode === undefined && !socket.frames.some(({ channel }) => channel === marker);
      n++
    )
      await new Promise(resolve => setTimeout(resolve, 5))
    if (socket.closeCode === undefined && !socket.frames.some(({ channel }) => channel === marker)) {
      t.fail(`no answer after ${text.slice(0, 100)}`)
      break
    }
    socket.frames.length = 0
  }
  t.comment(`${opened} connections`)
  const speaking = setInterval(() => {
    k.publish('platform', 'update', { updating: true })
  }, 20)
  t.match(await bystander.next(({ channel, event }) => channel === 'platform' && event === 'update'), {
    data: { updating: true }
  })
  clearInterval(speaking)
  await bystander.close()
})
