import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'
import { settingsFrom, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import type { HostReport } from '../api.js'
import { dnsVerdict, lookUp } from '../dns-check.js'
import { isPlatformHost, overlaps, readHostname } from '../hostname.js'
import { ownHostCandidates } from '../own-host.js'
import { checkDashboard, platformRouteOf } from '../platform-route.js'
import { routingTableOf } from '../routing-table.js'
import { isPublicAddress, ServerAddresses } from '../server-address.js'
import { settings } from '../settings.js'
import { tableChanges } from '../table-changes.js'
import { tlsStateOf } from '../tls-status.js'

test('a hostname is kept in one form', async t => {
  for (const [written, kept] of [
    ['WWW.Example.COM.', 'www.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['*.Bücher.example', '*.xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['例え.テスト', 'xn--r8jz45g.xn--zckzah'],
    ['1.2.example', '1.2.example']
  ] as const)
    t.equal(readHostname(written), kept)
})

test('names overlap where a request could come by both', async t => {
  t.ok(overlaps('*.a.test', 'b.a.test'))
  t.ok(overlaps('b.a.test', '*.a.test'))
  t.notOk(overlaps('*.a.test', 'a.test'))
  t.notOk(overlaps('*.a.test', 'c.b.a.test'))
  t.notOk(overlaps('*.a.test', 'ba.test'))
  const platform = {
    host: '0.0.0.0',
    publicUrl: 'https://Busbar.example.com',
    dashboard: 'panel.example.org'
  }
  t.ok(isPlatformHost('busbar.example.com', platform))
  t.ok(isPlatformHost('*.example.com', platform))
  t.notOk(isPlatformHost('example.com', platform))
  t.ok(isPlatformHost('panel.example.org', platform), 'the one by which the proxy serves it')
  t.ok(isPlatformHost('*.example.org', platform))
})

test('an application is called after itself and its project, or by its slug', async t => {
  t.same(ownHostCandidates({ slug: 'shop-web-1a2b3c4d', project_slug: 'shop' }), [
    'web-shop.localhost',
    'shop-web-1a2b3c4d.localhost'
  ])
  t.same(
    ownHostCandidates({ slug: 'Shop-web-1a2b3c4d', project_slug: 'Shop' }),
    [],
    'what is no label is left out'
  )
})

test('the table has exact names first, then wildcards, and longer paths before shorter ones', async t => {
  const domain = (hostname: string, path: string) =>
    ({ id: `${hostname}${path}`, hostname, path, ssl_mode: 'off', application_id: 'a' }) as never
  const { routes } = routingTableOf({
    domains: [
      domain('*.a.test', '/'),
      domain('b.a.test', '/'),
      domain('b.a.test', '/x/y'),
      domain('b.a.test', '/x')
    ],
    features: [],
    ownHosts: [{ hostname: 'web-shop.localhost', application_id: 'a' }],
    certificates: [],
    platform: null,
    trustedProxies: []
  })
  t.same(
    routes.map(({ hostname, path }) => hostname + path),
    ['b.a.test/x/y', 'b.a.test/x', 'b.a.test/', 'web-shop.localhost/', '*.a.test/']
  )
})

test('no domain has the name of the platform, and a feature that cannot be read any more closes its route', async t => {
  const domain = (id: string, hostname: string) =>
    ({ id, hostname, path: '/', ssl_mode: 'off', application_id: 'a' }) as never
  const feature = (domain_id: string, feature_type: string, config: object) =>
    ({ domain_id, feature_type, config }) as never
  const platform = {
    hostname: 'panel.a.test',
    forceHttps: false,
    tls: { mode: 'off' },
    upstream: { host: '127.0.0.1', port: 8080 }
  } as const
  const hash = (cost: number): string => `$2b$${cost}$${'a'.repeat(53)}`
  const table = routingTableOf({
    domains: [domain('1', 'panel.a.test'), domain('2', 'slow.a.test'), domain('3', 'shop.a.test')],
    features: [
      feature('2', 'basic_auth', { username: 'ann', hashed_password: hash(31) }),
      feature('3', 'basic_auth', { username: 'ann', hashed_password: hash(10) })
    ],
    ownHosts: [{ hostname: 'panel.a.test', application_id: 'b' }],
    certificates: [],
    platform,
    trustedProxies: ['10.0.0.0/8']
  })
  t.match(table, { platform, trustedProxies: ['10.0.0.0/8'] })
  t.match(
    table.routes.map(({ hostname, features }) => ({ hostname, features })),
    [
      { hostname: 'shop.a.test', features: [{ type: 'basic_auth', username: 'ann' }] },
      { hostname: 'slow.a.test', features: [{ type: 'ip_allowlist', ranges: [] }] }
    ]
  )
  t.same(tableChanges(undefined, table), { added: 3, updated: 0, removed: 0 })
  const other = {
    ...table,
    platform: null,
    routes: table.routes.map(one => ({ ...one, path: `/${one.id}` }))
  }
  t.same(tableChanges(table, other), { added: 0, updated: 2, removed: 1 })
  t.same(tableChanges(table, { ...table }), { added: 0, updated: 0, removed: 0 })
})

test('the platform is served as its settings say, and by default as well as the driver can', async t => {
  const listening = { host: '127.0.0.1', port: 8080 }
  const route = (environment: Record<string, string>, context: object = {}) =>
    platformRouteOf(settingsFrom(settings, environment), { listening, issues: false, ...context })
  t.equal(route({}), null)
  const named = { DASHBOARD_DOMAIN: 'Panel.Example.com.' }
  t.same(route(named), {
    hostname: 'panel.example.com',
    forceHttps: false,
    tls: { mode: 'off' },
    upstream: listening
  })
  t.match(route(named, { issues: true }), { tls: { mode: 'automatic' }, forceHttps: true })
  t.equal(route(named, { listening: null }), null, 'not before it listens')
  t.match(route({ ...named, DASHBOARD_UPSTREAM: 'busbar:9000' }, { listening: null }), {
    upstream: { host: 'busbar', port: 9000 }
  })
  const custom = { ...named, DASHBOARD_SSL_MODE: 'custom' }
  t.throws(() => checkDashboard(settingsFrom(settings, custom)), /DASHBOARD_CERTIFICATE_ID/)
  const id = 'a3bb189e-8bf9-4c8c-9f3b-000000000000'
  t.match(route({ ...custom, DASHBOARD_CERTIFICATE_ID: id }), { tls: { mode: 'custom', certificateId: id } })
  for (const wrong of [
    { DASHBOARD_DOMAIN: '*.example.com' },
    { DASHBOARD_DOMAIN: '192.0.2.1' },
    { DASHBOARD_SSL_MODE: 'sometimes' },
    { DASHBOARD_UPSTREAM: 'busbar' },
    { DASHBOARD_UPSTREAM: 'busbar:0' }
  ])
    t.throws(() => settingsFrom(settings, wrong), new RegExp(Object.keys(wrong)[0] ?? ''))
})

test('the address that domains have to lead to is what is set, or what is found out, where that is public', async t => {
  let detected = 0
  const clock = testClock()
  const found = new ServerAddresses(undefined, clock, async () => {
    detected += 1
    return '9.9.9.9'
  })
  for (let times = 0; times < 3; times += 1)
    t.same(await found.read(), { effective: '9.9.9.9', source: 'detected' })
  t.equal(detected, 1, 'it is kept for a while')
  await clock.advance(31_000)
  await found.read()
  t.equal(detected, 2)
  const none = new ServerAddresses(undefined, clock, async () => undefined)
  t.same(await none.read(), { effective: '', source: 'unknown' })
  t.match(await new ServerAddresses('192.0.2.1', clock).read(), { source: 'env' })
  for (const address of [
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '127.0.0.1',
    'fd00::1',
    'fe80::1'
  ])
    t.notOk(isPublicAddress(address), address)
  for (const address of ['9.9.9.9', '172.32.0.1', '2a00:1450::1']) t.ok(isPublicAddress(address), address)
  const real = await new ServerAddresses(undefined, clock).read()
  t.ok(real.effective === '' || isPublicAddress(real.effective), 'of this machine, whatever it has')
})

const now = new Date('2026-01-01T00:00:00Z')
const inDays = (days: number): Date => new Date(now.getTime() + days * 86_400_000)
const report: HostReport = { fault: null, tlsAt: null, tlsFault: null }
const leaf = (days: number, covers = true) => ({ issuer: 'R1', notAfter: inDays(days), covers })

test('the status follows what is served, and says why', async t => {
  const state = (more: object) =>
    tlsStateOf({ mode: 'automatic', report, leaf: undefined, dns: undefined, now, ...more })
  t.match(state({ mode: 'off', leaf: leaf(5) }), { tls_status: 'disabled', tls_not_after: null })
  t.match(state({}), { tls_status: 'pending', tls_error: null })
  t.match(state({ report: { ...report, tlsFault: 'refused' } }), {
    tls_status: 'failed',
    tls_error: 'refused'
  })
  t.match(state({ report: { ...report, fault: 'no TLS' } }), { tls_status: 'failed', tls_error: 'no TLS' })
  t.match(state({ leaf: leaf(90, false) }), { tls_status: 'failed', tls_error: /not for this hostname/ })
  t.match(state({ leaf: leaf(15) }), { tls_status: 'active', tls_issuer: 'R1' })
  t.match(state({ leaf: leaf(13) }), { tls_status: 'expiring' })
  t.match(state({ leaf: leaf(0) }), { tls_status: 'expired' })
  const own = { ...report, localAuthority: true }
  t.match(state({ report: own, leaf: leaf(0.5) }), { tls_status: 'local', tls_error: null })
  t.match(state({ report: own, leaf: leaf(90, false) }), { tls_status: 'failed' })
  t.match(state({ report: own }), { tls_status: 'pending' })
  t.match(state({ mode: 'custom', report: own, leaf: leaf(90) }), { tls_status: 'active' })
  const elsewhere = dnsVerdict('a.test', { addresses: ['192.0.2.9'] }, '192.0.2.1')
  t.match(state({ dns: elsewhere }), { tls_status: 'pending', tls_advisory: /192\.0\.2\.9/ })
  t.match(state({ dns: elsewhere, leaf: leaf(90) }), { tls_status: 'active', tls_advisory: null })
  const unknown = dnsVerdict('a.test', { failure: 'unknown name' }, '192.0.2.1')
  t.match(state({ dns: unknown }), { tls_status: 'failed', tls_error: /A record a\.test → 192\.0\.2\.1/ })
  t.equal(dnsVerdict('a.test', { addresses: ['192.0.2.1'] }, '192.0.2.1').leadsHere, true)
  t.match(dnsVerdict('a.test', { failure: 'no answer' }, '::1'), { error: null, advisory: /looked up again/ })
})

test('names are looked up at the name servers that are set', async t => {
  const server = createSocket('udp4')
  const asked: string[] = []
  server.on('message', (query, { port, address }) => {
    const { name, end } = questionOf(query)
    asked.push(name)
    const isA = query.readUInt16BE(end) === 1
    const isKnown = name.startsWith('here.') || name.startsWith('busbar-check.')
    const answer = Buffer.concat([
      query.subarray(0, 2),
      Buffer.from([0x81, isKnown ? 0x80 : 0x83, 0, 1, 0, isKnown && isA ? 1 : 0, 0, 0, 0, 0]),
      query.subarray(12, end + 4),
      ...(isKnown && isA ? [Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1])] : [])
    ])
    server.send(answer, port, address)
  })
  await new Promise<void>(resolve => server.bind(0, '127.0.0.1', resolve))
  t.teardown(async () => await new Promise<void>(resolve => server.close(() => resolve())))
  const servers = [`127.0.0.1:${(server.address() as AddressInfo).port}`]
  t.same(await lookUp('here.a.test', servers), { addresses: ['192.0.2.1'] })
  t.same(await lookUp('nowhere.a.test', servers), { failure: 'unknown name' })
  t.same(await lookUp('*.a.test', servers), { addresses: ['192.0.2.1'] })
  t.ok(asked.includes('busbar-check.a.test'), 'a wildcard is asked for by a name below it')
})

/** The name that a query asks for, and where it ends. */
function questionOf(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}
