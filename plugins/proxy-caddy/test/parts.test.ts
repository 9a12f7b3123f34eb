import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { appendFile, rename, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Answer, decode, encode } from 'dns-packet'
import { type Test, test } from 'tap'
import { createLog } from '../../../core/log/log.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { route, table } from '../../domains/test/driver-contract.js'
import { caddyConfig } from '../config/caddy-config.js'
import type { CaddyOptions } from '../config/caddy-options.js'
import { canonical } from '../config/json.js'
import { literal } from '../config/literal.js'
import { openAnswerer } from '../dns/answerer.js'
import { addressIn, applicationName, hostName } from '../dns/names.js'
import { Zone } from '../dns/zone.js'
import { readAccessLine } from '../log/access-line.js'
import { FileTail, lastLines } from '../log/file-tail.js'
import { hostnameIn } from '../log/hostname-in.js'
import { TlsFaults } from '../log/tls-faults.js'
import { ownershipOf } from '../ownership.js'
import { driftOf } from '../reconcile.js'
import { refusedRoutes } from '../refused-routes.js'
import { labDirectory } from './caddy-lab.js'

const options: CaddyOptions = {
  mark: 'busbar-installation-x',
  admin: { listen: 'unix//x' },
  bind: '',
  httpPort: 80,
  httpsPort: 443,
  resolver: { host: '127.0.0.1', port: 5300 },
  responder: { host: '127.0.0.1', port: 5301 },
  graceSeconds: 5,
  keepsStreams: true,
  storage: '/data',
  logDirectory: '/logs',
  accessLog: true,
  issuer: { kind: 'acme', directory: undefined, email: undefined, rootFile: undefined },
  ownProxy: { header: 'x-busbar-proxy', value: 's' }
}

test('the configuration is a function of what it is given, and says nothing of where applications are', async t => {
  const wanted = table(
    route({ id: '1', hostname: 'a.example.com', applicationId: 'a', tls: { mode: 'automatic' } }),
    route({ id: '2', hostname: '*.example.com', applicationId: 'b' })
  )
  const first = caddyConfig(wanted, options)
  t.equal(canonical(first.config), canonical(caddyConfig(structuredClone(wanted), options).config))
  t.same([...first.hostFaults], [])
  const text = canonical(first.config)
  t.match(text, /"automate":\["a\.example\.com"\]/)
  t.notMatch(text, /"dial"/, 'no address of a container')
  t.match(
    [
      ...caddyConfig(
        table(
          route({
            hostname: 'x.example.com',
            applicationId: 'a',
            features: [{ type: 'rate_limit', rate: '1/s' }]
          })
        ),
        options
      ).hostFaults
    ],
    [['x.example.com', /rate_limit/]],
    'what stock Caddy cannot do is not served without'
  )
})

test('names for hosts have the address in them, and lead back to it', async t => {
  for (const address of [
    '127.0.0.1',
    '10.201.3.4',
    '::1',
    'fe80::1',
    '2001:db8:0:0:1::',
    '::ffff:10.0.0.1',
    '1:2:3:4:5:6:7:8'
  ]) {
    const found = addressIn(hostName(address))
    t.ok(found)
    const plain = (written: string): string =>
      new URL(`http://${written.includes(':') ? `[${written}]` : written}`).hostname
    t.equal(plain(found ?? ''), plain(address), address)
  }
  for (const name of [
    'v4-256-1-1-1.at.busbar.invalid.',
    'v4-1-1-1.at.busbar.invalid.',
    'v6-1.at.busbar.invalid.',
    'engine.example.com.'
  ])
    t.equal(addressIn(name), undefined, name)
  for (const id of ['a', 'A'.repeat(300), '../x', 'ü', 'f2a0c4de-1111-2222-3333-444455556666'])
    for (const label of applicationName(id, 65_535).split('.')) t.match(label, /^[a-z0-9-]{0,63}$/)
})

interface Asked {
  readonly code: string | undefined
  readonly answers: readonly Answer[]
}

async function ask(
  t: Test,
  port: number
): Promise<{
  ask(name: string, type: 'SRV' | 'A' | 'AAAA' | 'TXT'): Promise<Asked>
  send(bytes: Buffer): void
}> {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  const heard: Buffer[] = []
  socket.on('message', message => heard.push(message))
  await new Promise<void>(resolve => socket.connect(port, '127.0.0.1', resolve))
  let id = 1
  return {
    send: bytes => socket.send(bytes),
    ask: async (name, type) => {
      const mine = id++
      return await until(async () => {
        // A datagram may be lost.
        socket.send(encode({ type: 'query', id: mine, flags: 256, questions: [{ type, name }] }))
        const found = heard.map(message => decode(message)).find(message => message.id === mine)
        const code = (found as { rcode?: string } | undefined)?.rcode
        return found && { code, answers: found.answers ?? [] }
      }, `an answer for ${name}`)
    }
  }
}

test('the name server answers what it knows, and survives whatever it is sent', async t => {
  let now = 1000
  const zone = new Zone({ host: '127.0.0.1', port: 9999 }, () => now)
  const log = createLog({ level: 'silent', format: 'json', redactor: createRedactor() })
  const answerer = await openAnswerer({ host: '127.0.0.1', port: 0, zone, log })
  t.teardown(() => answerer.close())
  const client = await ask(t, answerer.port)
  const name = applicationName('a', null)
  t.match(await client.ask(name, 'SRV'), { code: 'NXDOMAIN' })
  zone.serve([{ applicationId: 'a', containerPort: null }])
  t.match((await client.ask(name, 'SRV')).answers, [{ data: { port: 9999 } }], 'stopped')
  t.same(
    zone.retarget(
      'a',
      new Map([[null, { deploymentId: 'd', containerId: 'c', host: '10.0.0.7', port: 3000 }]])
    ),
    [name]
  )
  const [answer] = (await client.ask(name.toUpperCase(), 'SRV')).answers
  t.match(answer, { data: { port: 3000, target: 'v4-10-0-0-7.at.busbar.invalid' } })
  t.match((await client.ask('v4-10-0-0-7.at.busbar.invalid', 'A')).answers, [{ data: '10.0.0.7' }])
  t.same(await client.ask('v4-10-0-0-7.at.busbar.invalid', 'AAAA'), { code: 'NOERROR', answers: [] })
  t.match((await client.ask(hostName('::1'), 'AAAA')).answers, [{ data: '::1' }])
  t.match(await client.ask('www.example.com', 'A'), { code: 'REFUSED' })
  t.match(await client.ask('x.app.busbar.invalid', 'TXT'), { code: 'NXDOMAIN' })
  now = 1500
  t.match(zone.asked(name), { at: 1000 })
  t.same(zone.dialled('a'), ['v4-10-0-0-7.at.busbar.invalid.:3000'])

  for (let n = 0; n < 2000; n++) client.send(randomBytes(n % 600))
  const loop = Buffer.concat([Buffer.from([0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 33, 0, 1])])
  for (const bytes of [
    loop,
    Buffer.alloc(0),
    Buffer.alloc(12),
    Buffer.alloc(512, 0xff),
    Buffer.alloc(512, 0xc0)
  ])
    client.send(bytes)
  client.send(encode({ type: 'response', id: 1, questions: [{ type: 'SRV', name }] }))
  t.match((await client.ask(name, 'SRV')).answers, [{ data: { port: 3000 } }], 'it goes on')
  zone.serve([])
  t.match(await client.ask(name, 'SRV'), { code: 'NXDOMAIN' }, 'known no more')
})

test('lines of the access log become requests', async t => {
  const line = {
    level: 'info',
    ts: 1700000000.5,
    logger: 'http.log.access',
    msg: 'handled request',
    request: {
      remote_ip: '127.0.0.1',
      remote_port: '1',
      proto: 'HTTP/1.1',
      method: 'POST',
      host: 'WWW.example.com.:8080',
      uri: '/x?y=1',
      headers: { 'User-Agent': ['curl'], 'Content-Length': ['3'] }
    },
    user_id: '',
    duration: 0.25,
    size: 12,
    status: 201,
    resp_headers: { 'X-Request-Id': ['f2a0c4de-1111-4222-8333-444455556666'] }
  }
  const text = JSON.stringify(line)
  t.same(readAccessLine(text), {
    id: 'f2a0c4de-1111-4222-8333-444455556666',
    hostname: 'www.example.com',
    method: 'POST',
    path: '/x?y=1',
    statusCode: 201,
    latencyMs: 250,
    requestSize: 3,
    responseSize: 12,
    clientIp: '127.0.0.1',
    userAgent: 'curl',
    at: 1700000000250
  })
  for (const other of [
    '',
    '{',
    'null',
    '[]',
    '{"logger":"tls"}',
    JSON.stringify({ ...line, logger: 'http' }),
    JSON.stringify({ ...line, request: null }),
    JSON.stringify({ ...line, ts: 'x' }),
    text.slice(0, -1)
  ])
    t.equal(readAccessLine(other), null, other.slice(0, 40))
  t.equal(hostnameIn('[::1]:80'), '::1')
})

test('of the log of an attempt the first error is told, and none after it succeeded', async t => {
  const faults = new TlsFaults()
  const entry = (fields: object): void =>
    faults.read(JSON.stringify({ level: 'error', ts: 1, logger: 'tls.issuance.acme.acme_client', ...fields }))
  const dns = { type: 'urn:ietf:params:acme:error:dns', detail: 'NXDOMAIN looking up A for www.example.com' }
  entry({ msg: 'challenge failed', identifier: 'www.example.com', problem: dns })
  entry({ msg: 'validating authorization', identifier: 'www.example.com', error: 'later words' })
  t.match(faults.faultOf('www.example.com'), /dns: NXDOMAIN looking up A.*let its DNS lead to this server/)
  t.equal(faults.faultOf('other.example.com'), null)
  entry({ logger: 'tls.obtain', msg: 'will retry', error: '[www.example.com] Obtain: later words' })
  const limited =
    '[www.example.com] creating new order: HTTP 429 urn:ietf:params:acme:error:rateLimited - too many'
  entry({
    logger: 'tls.obtain',
    msg: 'could not get certificate from issuer',
    identifier: 'www.example.com',
    error: limited
  })
  t.match(faults.faultOf('www.example.com'), /too many.*wait/, 'that of the newest attempt')
  entry({
    logger: 'tls',
    msg: 'stapling OCSP',
    level: 'warn',
    error: 'no OCSP',
    identifiers: ['www.example.com']
  })
  t.match(faults.faultOf('www.example.com'), /too many/)
  entry({
    level: 'info',
    logger: 'tls.obtain',
    msg: 'certificate obtained successfully',
    identifier: 'www.example.com'
  })
  t.equal(faults.faultOf('www.example.com'), null)
})

test('a log is followed through rotation and cutting, and its end is read', async t => {
  const path = join(await labDirectory(t), 'x.log')
  const tail = await FileTail.begin(path, { mostBytes: 1024 * 1024 })
  t.teardown(() => tail.close())
  t.same(await tail.lines(), [], 'it need not exist yet')
  await writeFile(path, 'one\ntwo')
  t.same(await tail.lines(), ['one'])
  await appendFile(path, ' and a half\nthree\n')
  t.same(await tail.lines(), ['two and a half', 'three'])
  await appendFile(path, 'last\n')
  await rename(path, `${path}.1`)
  await writeFile(path, 'new\n')
  t.same(await tail.lines(), ['last', 'new'])
  await truncate(path, 0)
  t.same(await tail.lines(), [])
  await appendFile(path, 'again\n')
  t.same(await tail.lines(), ['again'])
  await writeFile(path, Array.from({ length: 100 }, (_, n) => `${n}\n`).join(''))
  t.same(await lastLines(path, 3), ['97', '98', '99'])
  t.same(await lastLines(`${path}.none`, 3), [])
})

test('whose a configuration is, and how one differs', async t => {
  const mark = 'busbar-installation-x'
  t.equal(ownershipOf(null, mark), 'empty')
  t.equal(ownershipOf({ admin: {}, logging: {} }, mark), 'empty')
  t.equal(ownershipOf({ '@id': mark, apps: { http: {} } }, mark), 'ours')
  for (const foreign of [{ apps: { http: {} } }, { '@id': 'busbar-installation-y' }, [], 'x', { '@id': 1 }])
    t.equal(ownershipOf(foreign, mark), 'foreign', JSON.stringify(foreign))
  const { config } = caddyConfig(
    table(route({ id: '1', hostname: 'a.example.com', applicationId: 'a' })),
    options
  )
  const more = caddyConfig(
    table(
      route({ id: '1', hostname: 'a.example.com', applicationId: 'b' }),
      route({ id: '2', hostname: 'b.example.com', applicationId: 'b' })
    ),
    options
  ).config
  t.same(driftOf(config, config, 'busbar'), { added: 0, updated: 0, removed: 0 })
  t.same(driftOf(config, more, 'busbar'), { added: 1, updated: 1, removed: 0 })
  t.same(driftOf(more, config, 'busbar'), { added: 0, updated: 1, removed: 1 })
  t.match(driftOf(null, config, 'busbar'), { added: 2, removed: 0 })
  t.same(driftOf({ ...config, logging: {} }, config, 'busbar'), { added: 0, updated: 1, removed: 0 })
})

test('of a thousand routes the few that are refused are found with few trials', async t => {
  const routes = Array.from({ length: 1000 }, (_, n) =>
    route({ id: String(n), hostname: `h${n}.example.com`, applicationId: 'a' })
  )
  let trials = 0
  const refused = await refusedRoutes(routes, async some => {
    trials++
    const bad = some.find(({ id }) => ['17', '500', '999'].includes(id))
    return bad === undefined ? null : `bad ${bad.id}`
  })
  t.same(
    [...refused],
    [
      ['17', 'bad 17'],
      ['500', 'bad 500'],
      ['999', 'bad 999']
    ]
  )
  t.ok(trials < 80, `${trials} trials`)
})

test('braces in a text stay', async t => {
  t.equal(literal('}'), '}')
  t.equal(literal('{env.X}'), '\\{env.X\\}')
})
