import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import knex from 'knex'
import pg from 'pg'
import { pino, symbols } from 'pino'
import { test } from 'tap'
import { Sender, WebSocket, WebSocketServer } from 'ws'
import { pinned } from './pinned.js'

const root = join(import.meta.dirname, '../..')
const read = (file: string): any => JSON.parse(readFileSync(join(root, file), 'utf8'))

test('every library whose privates are used is pinned to one version, which is the one that is installed', async t => {
  const { dependencies } = read('package.json')
  const { packages } = read('package-lock.json')
  for (const name of Object.keys(pinned)) {
    const { version } = read(`node_modules/${name}/package.json`)
    t.equal(dependencies[name], version, `package.json: ${name}`)
    t.equal(packages[''].dependencies[name], version, `package-lock.json: ${name}`)
    t.equal(packages[`node_modules/${name}`].version, version, `what package-lock.json installs: ${name}`)
  }
})

test('ws: Sender.frame(data, options) makes the bytes of a frame', async t => {
  const frame = Sender.frame(Buffer.from('a'), {
    fin: true,
    rsv1: false,
    opcode: 1,
    mask: false
  })
  t.equal(Buffer.concat(frame).toString('hex'), '810161')
})

test('ws: WebSocket._socket is the socket below', async t => {
  const server = createServer()
  t.teardown(() => server.close())
  const sockets = new WebSocketServer({ server })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => client.terminate())
  const [[accepted]] = await Promise.all([once(sockets, 'connection'), once(client, 'open')])
  t.ok((accepted as { _socket?: unknown })._socket instanceof Socket)
})

for (const name of ['prepare', 'handleRowDescription'])
  test(`pg: Query has the method ${name}`, async t => {
    t.type((pg.Query.prototype as any)[name], 'function')
  })

for (const name of ['fields', '_parsers', 'parseRow'])
  test(`pg: Query._result has ${name}`, async t => {
    t.ok(name in (new pg.Query('select 1') as any)._result)
  })

test('pg: Query._accumulateRows is set where its rows are described, for one that keeps them', async t => {
  const query: any = new pg.Query('select 1', [], () => {})
  query.handleRowDescription({ fields: [] })
  t.ok(query._accumulateRows)
})

test('pg: Query.prepare asks its connection to describe the rows of a statement', async t => {
  const asked: string[] = []
  const connection = new Proxy(
    { parsedStatements: {} },
    {
      get: (target, name) =>
        name in target ? Reflect.get(target, name) : (): unknown => asked.push(String(name))
    }
  )
  const query: any = new pg.Query({ text: 'select 1', name: 'one' } as never)
  query.prepare(connection)
  t.ok(asked.includes('describe'), asked.join())
})

test('pg: Client.getTransactionStatus() tells whether a transaction is open', async t => {
  t.equal((new pg.Client() as any).getTransactionStatus?.(), null)
})

test('pg: Client.processID is the id that cancels what it does', async t => {
  t.ok('processID' in new pg.Client())
})

test('pg: Client.connection.stream is the socket below', async t => {
  t.ok((new pg.Client() as any).connection.stream instanceof Socket)
})

const builder = knex.knex({ client: 'pg', version: '15' })

for (const name of ['acquireConnection', 'releaseConnection', 'query', 'positionBindings', 'prepBindings'])
  test(`knex: its client has the method ${name}`, async t => {
    t.type(builder.client[name], 'function')
  })

test('knex: its client runs a query by query(connection, compiled) and reads rows of its `response`', async t => {
  const own = knex.knex({ client: 'pg', version: '15' })
  Object.assign(own.client, {
    acquireConnection: async () => 'a connection',
    releaseConnection: async () => {},
    query: async (on: unknown, query: object) => ({
      ...query,
      response: { command: 'SELECT', rows: [{ on }] }
    })
  })
  t.same(await own('table').select(), [{ on: 'a connection' }])
})

test('knex: client.raw(text, bindings).toSQL().toNative() has `sql` and `bindings`', async t => {
  t.match(builder.client.raw('select :a', { a: 1 }).toSQL().toNative(), { sql: 'select $1', bindings: [1] })
})

const named = symbols as unknown as Record<string, symbol>
for (const name of ['serializersSym', 'stringifiersSym', 'lsCacheSym', 'formattersSym', 'chindingsSym'])
  test(`pino: a logger keeps symbols.${name}`, async t => {
    t.ok(named[name] !== undefined && named[name] in pino({ level: 'silent' }))
  })

test('pino: a logger with a prefix of its own keeps it under symbols.msgPrefixSym', async t => {
  const logger = pino({ level: 'silent' }).child({}, { msgPrefix: 'a' })
  t.equal((logger as any)[named.msgPrefixSym ?? ''], 'a')
})

// Of Node itself, which is not pinned: see sdk/http1/stop-parsing.ts.
test('Node: the parser of a connection has the functions that are taken from it so that it makes no more of what it has read', async t => {
  const server = createServer((_, response) => response.end())
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => client.destroy())
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const [{ socket }] = await once(server, 'request')
  const names = Object.values(socket.parser).flatMap(value => (typeof value === 'function' ? value.name : []))
  const taken = ['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete']
  t.same(
    taken.filter(name => !names.includes(name)),
    []
  )
})

test('dockerode: its session module is what loads gRPC, its modem one what loads ssh2, and nothing else asks for them', async t => {
  const program = `
    import { createRequire } from 'node:module'
    import { loadDockerode } from './plugins/runtime-docker/load-dockerode.ts'
    new (loadDockerode())()
    const loaded = Object.keys(createRequire(import.meta.url).cache)
    console.log(loaded.filter(path => path.includes('dockerode')).length > 5, loaded.filter(path => /grpc|ssh2/.test(path)).length)`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import=tsx', '--conditions=busbar-source', '--input-type=module', '--eval', program],
    { cwd: root }
  )
  t.equal(stdout.trim(), 'true 0')
  const source = readFileSync(join(root, 'node_modules/dockerode/lib/docker.js'), 'utf8')
  t.equal(source.split('withSession').length - 1, 2, 'it is loaded, and used by buildImage alone')
  const modem = readFileSync(join(root, 'node_modules/docker-modem/lib/modem.js'), 'utf8')
  t.equal(modem.split(/\bssh\(/).length - 1, 1, 'it is used for engines by SSH alone')
})

test('prom-client: its registry is a module of its own, which writes what any object with a name and a get() answers', async t => {
  const program = `
    const Registry = require('prom-client/lib/registry.js')
    const registry = new Registry()
    registry.registerMetric({ name: 'a', get: async () => ({ name: 'a', help: 'A', type: 'histogram', aggregator: 'sum',
      values: [{ metricName: 'a_sum', labels: { b: 'c' }, value: 1 }] }) })
    registry.metrics().then(text => console.log(JSON.stringify([text, registry.contentType,
      Object.keys(require.cache).filter(path => /opentelemetry|tdigest/.test(path)).length])))`
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: root })
  t.same(JSON.parse(stdout), [
    '# HELP a A\n# TYPE a histogram\na_sum{b="c"} 1\n',
    'text/plain; version=0.0.4; charset=utf-8',
    0
  ])
})
