import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import type { HostReport } from '../api.js'
import { dnsVerdict, lookUp } from '../dns-check.js'
import { isPlatformHost, overlaps, readHostname } from '../hostname.js'
import { ownHostCandidates } from '../own-host.js'
import { routingTableOf } from '../routing-table.js'
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
  const platform = { host: '0.0.0.0', publicUrl: 'https://Busbar.example.com' }
  t.ok(isPlatformHost('busbar.example.com', platform))
  t.ok(isPlatformHost('*.example.com', platform))
  t.notOk(isPlatformHost('example.com', platform))
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
    certificates: []
  })
  t.same(
    routes.map(({ hostname, path }) => hostname + path),
    ['b.a.test/x/y', 'b.a.test/x', 'b.a.test/', 'web-shop.localhost/', '*.a.test/']
  )
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
