/**
 * Secrets are planted in every field that holds one, as the schemas of all operations name them, and then
 * looked for in everything the platform writes: the log, answers, live messages, what is sent to PostgreSQL
 * and every column there, and its files.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createTestKernel,
  type HappyCall,
  type HappyFixture,
  type TestAnswer,
  type TestKernel,
  until
} from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { RouteRecord } from '../../core/declarations/records.js'
import { requireEngine } from '../../lab/engine.js'
import { listenToStatements } from '../../lab/statements.js'
import { canary, plant, secretPlaces, secretsIn, Watch } from './canaries.js'
import {
  eventStream,
  fixtureFor,
  type Happy,
  happyOf,
  order,
  readStream,
  removeRound
} from './happy-round.js'

const watch = new Watch()
const leaks = new Map<string, string>()
const log: string[] = []
const statements: string[] = []
const messages: string[] = []

const nameOf = ({ method, url }: RouteRecord): string => `${method} ${url.replace(/:(\w+)/g, '{$1}')}`
/** Operations whose purpose is to show a secret once, or to somebody who may see it. */
const reveals = (record: RouteRecord): boolean =>
  record.audit !== undefined &&
  (record.method === 'GET' || /token|deploy_hook|totp|login/.test(record.audit.action))

function look(where: string, text: string, allowed: readonly string[] = []): void {
  for (const found of watch.find(text, allowed))
    if (!leaks.has(`${where} ${found.slice(0, 60)}`))
      leaks.set(`${where} ${found.slice(0, 60)}`, `${where}: ${found}`)
}

async function send(
  fixture: HappyFixture,
  { method, url, produces }: RouteRecord,
  made: HappyCall,
  body: unknown
): Promise<TestAnswer> {
  fixture.k.resetRateLimits()
  const ids = { ...fixture.ids, ...made.ids }
  const path = url.replace(/:(\w+)/g, (_, param: string) => ids[param] ?? `no-${param}`)
  const client = made.as ?? fixture.admin
  if (produces === eventStream) return await readStream(client, path)
  return await client.send(method, path + (made.query ?? ''), { body, headers: made.headers })
}

/** Every GET as somebody who may only look at the project: what each was answered, by operation. */
async function readAsViewer(
  fixture: HappyFixture,
  records: readonly RouteRecord[],
  happy: ReadonlyMap<string, Happy>
): Promise<Map<string, number>> {
  const { k, admin, ids } = fixture
  k.resetRateLimits()
  const viewer = await k.as.session('onlooker')
  const project = `/api/projects/${ids.projectId ?? ''}`
  const { body } = await admin.put(`${project}/members`, {
    email: (await k.user('onlooker')).email,
    role: 'viewer'
  })
  // One of the calls before has shared it with everybody, who may reveal its secrets.
  await admin.put(`${project}/sharing`, { shared: false })
  if (body.role !== 'viewer' || (await viewer.get(project)).body.my_role !== 'viewer')
    throw new Error(`nobody was let in: ${JSON.stringify(body)}`)
  const answered = new Map<string, number>()
  for (const record of records.filter(({ method }) => method === 'GET')) {
    const { ids: own = {}, query } = (await happy.get(record.plugin)?.calls[nameOf(record)]?.(fixture)) ?? {}
    const { status, body } = await send(
      { ...fixture, admin: viewer },
      record,
      { ids: own, ...(query === undefined ? {} : { query }) },
      undefined
    )
    look(
      `the answer of ${nameOf(record)} to a viewer`,
      typeof body === 'string' ? body : (JSON.stringify(body) ?? '')
    )
    answered.set(nameOf(record), status)
  }
  return answered
}

/** Every row of every table, as text. */
async function rowsOf(k: TestKernel): Promise<Array<{ table: string; text: string }>> {
  const tables = await k.query<{ name: string }>(`
    select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`)
  const all = await Promise.all(
    tables.map(async ({ name }) =>
      (await k.query<{ text: string }>(`select row::text as text from ${name} as row`)).map(({ text }) => ({
        table: name,
        text
      }))
    )
  )
  return all.flat()
}

async function* filesIn(folder: string): AsyncGenerator<string> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesIn(path)
    else if (entry.isFile() && (await stat(path)).size < 10_000_000) yield path
  }
}

/** What was planted is used: a deploy gets it all. */
async function deployPlanted(t: Test, { k, admin, ids }: HappyFixture): Promise<void> {
  const path = `/api/projects/${ids.projectId ?? ''}/applications/${ids.deployedId ?? ''}`
  await until(
    async () => {
      k.resetRateLimits()
      const [newest] = (await admin.get(`${path}/deployments`)).body as any[]
      return newest.finished_at !== null
    },
    'the deployment of before has ended',
    90_000
  )
  const { status, body } = await admin.post(`${path}/deploy`)
  t.ok(status === 202 || status === 404 || status === 409, `${status} ${JSON.stringify(body).slice(0, 100)}`)
  if (status !== 202) return
  await until(
    async () => {
      k.resetRateLimits()
      return (await admin.get(`${path}/deployments/${body.id as string}`)).body.finished_at !== null
    },
    'the deployment has ended',
    120_000
  )
}

test('no secret is found in clear in anything that the platform writes', async t => {
  if (!(await requireEngine(t))) return
  const k = await createTestKernel({
    onLog: line => {
      log.push(line)
    },
    environment: { LOG_LEVEL: 'trace' }
  })
  t.teardown(async () => {
    await k.close()
  })
  const { hub } = k.kernel
  const publish = hub.publish.bind(hub)
  hub.publish = (channel, event, data) => {
    messages.push(`${channel} ${event} ${JSON.stringify(data)}`)
    publish(channel, event, data)
  }
  t.teardown(
    listenToStatements(statement => {
      statements.push(JSON.stringify(statement))
    })
  )
  watch.add('correct horse battery', 'the password of everybody here')
  const happy = new Map<string, Happy>()
  for (const id of order(k)) happy.set(id, await happyOf(id))
  const fixture = await fixtureFor(k, happy)
  const records = k
    .routes()
    .map(({ record }) => record)
    .sort(
      (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE') || b.url.length - a.url.length
    )

  let planted = 0
  let viewed: Map<string, number> | undefined
  for (const record of records) {
    const make = happy.get(record.plugin)?.calls[nameOf(record)]
    if (make === undefined) continue
    // While everything that was planted is there.
    if (record.method === 'DELETE') viewed ??= await readAsViewer(fixture, records, happy)
    const name = nameOf(record)
    const made = await make(fixture)
    const given = secretsIn(made.body)
    for (const secret of given) watch.add(secret, `the body of ${name}`)
    const answer = await send(fixture, record, made, made.body)
    const shown = secretsIn(answer.body)
    if (reveals(record)) for (const secret of shown) watch.add(secret, `the answer of ${name}`)
    look(`the answer of ${name}`, JSON.stringify(answer.body) ?? '', reveals(record) ? shown : [])
    for (const place of secretPlaces(record.schema.body as never)) {
      const secret = canary()
      watch.add(secret, `${place.join('.')} of ${name}`)
      planted++
      const again = await make(fixture)
      const { body } = await send(fixture, record, again, plant(again.body, place, secret))
      // What it shows may be a new secret of the platform's own, never the one that was sent.
      look(
        `the answer of ${name} to a canary`,
        JSON.stringify(body) ?? '',
        reveals(record) ? secretsIn(body).filter(one => one !== secret) : []
      )
    }
  }
  t.ok(planted > 10, `${planted} canaries`)
  await deployPlanted(t, fixture)

  await t.test('a viewer of the project reads it without its secrets, and reveals none', t => {
    const inProject = records.filter(
      ({ method, url }) => method === 'GET' && url.startsWith('/api/projects/:projectId')
    )
    for (const record of inProject) {
      const status = viewed?.get(nameOf(record))
      if (record.audit === undefined) t.ok(status === 200 || status === 404, `${nameOf(record)}: ${status}`)
      else t.equal(status, 403, nameOf(record))
    }
    t.ok(inProject.length > 12 && inProject.some(({ audit }) => audit !== undefined))
    t.same([...leaks.values()], [])
    t.end()
  })

  await t.test('it is in no answer that is not made to show it', async t => {
    for (const record of records.filter(
      ({ method, audit, produces }) => method === 'GET' && audit === undefined && produces !== eventStream
    )) {
      const { body } = await send(fixture, record, {}, undefined)
      look(`the answer of ${nameOf(record)}`, typeof body === 'string' ? body : (JSON.stringify(body) ?? ''))
    }
    t.same([...leaks.values()], [])
  })

  await t.test(
    'nor in the log, in live messages, in what PostgreSQL was sent, in its tables, in files',
    async t => {
      for (const line of log) look('the log', line)
      for (const message of messages) look('a live message', message)
      for (const statement of statements) look('a statement', statement)
      const rows = await rowsOf(k)
      for (const { table, text } of rows) look(`the table ${table}`, text)
      let files = 0
      for await (const path of filesIn(k.state.directory)) {
        files++
        look(`the file ${path}`, await readFile(path, 'latin1'))
      }
      t.comment(
        `${log.length} lines of log, ${messages.length} live messages, ${statements.length} statements, ${rows.length} rows, ${files} files, ${watch.size} forms of secrets`
      )
      t.ok(log.length > 100 && statements.length > 1000 && rows.length > 100)
      t.same([...leaks.values()], [])
      // A link in an e-mail is a secret too, and no answer shows it.
      t.notMatch(
        [...log, ...messages].filter(text => /[?&](token|invite)=[\w-]{16,}/.test(text)),
        [/./],
        'no link that lets somebody in'
      )
    }
  )
  t.same(await removeRound(fixture), [], 'nothing of it is left')
})

test('the watch finds what it is there to find', t => {
  const own = new Watch()
  own.add('Canary/abc+="&', 'a test')
  for (const text of [
    'x Canary/abc+="&',
    JSON.stringify({ a: 'Canary/abc+="&' }),
    encodeURIComponent('Canary/abc+="&'),
    Buffer.from('Canary/abc+="&').toString('base64'),
    Buffer.from('x:Canary/abc+="& and more').toString('base64'),
    Buffer.from('Canary/abc+="&').toString('hex')
  ]) {
    t.ok(own.find(text).length > 0, text)
  }
  t.same(own.find('nothing of the kind'), [])
  t.same(plant({ vars: [{ key: 'A', value: 'x', is_secret: false }] }, ['vars', '0', 'value'], 'y'), {
    vars: [{ key: 'A', value: 'y', is_secret: true }]
  })
  t.end()
})
