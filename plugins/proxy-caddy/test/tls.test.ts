import type { X509Certificate } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import type { ProxyRoute, RoutingTable } from 'busbar/api/domains'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { makeCertificate } from '../../../lab/certificates.js'
import { freeTcpPorts, openPebble, refusingAuthority } from '../../../lab/pebble.js'
import { route, table } from '../../domains/test/driver-contract.js'
import { caddyLab, labDirectory, startContainer, visit } from './caddy-lab.js'

const automatic = (hostname: string, fields: Partial<ProxyRoute> = {}): ProxyRoute =>
  route({ hostname, applicationId: 'a', tls: { mode: 'automatic' }, ...fields })

/** The certificate that is served for a name; undefined where there is none. */
async function leafOf(port: number, servername: string): Promise<X509Certificate | undefined> {
  return await new Promise(resolve => {
    const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate())
      socket.destroy()
    })
    socket.once('error', () => resolve(undefined))
  })
}

test('a certificate is issued and served, and plain HTTP is led to it', async t => {
  const [http = 0, https = 0] = await freeTcpPorts(2)
  const pebble = await openPebble(t, { httpPort: http, httpsPort: https })
  const lab = await caddyLab(t, {
    ports: [http, https],
    environment: {
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_ROOT_FILE: pebble.rootFile,
      ACME_EMAIL: 'a@example.com'
    }
  })
  const { driver } = lab
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  await pebble.lead('elsewhere.example.com', '127.0.0.9')
  await driver.load(
    table(
      automatic('acme.example.com', { forceHttps: true }),
      automatic('elsewhere.example.com'),
      route({ hostname: 'plain.example.com', applicationId: 'a' })
    )
  )
  const ca = await pebble.root()
  const answer = await until(
    async () => await visit(https, { hostname: 'acme.example.com', path: '/x', ca }).catch(() => undefined),
    'that the certificate is served'
  )
  t.match(JSON.parse(answer.text), { name: 'a', url: '/x', headers: { 'x-forwarded-proto': 'https' } })
  t.match(await driver.report('acme.example.com'), {
    fault: null,
    tlsAt: { host: '127.0.0.1', port: https },
    tlsFault: null
  })
  t.match(await visit(http, { hostname: 'acme.example.com', path: '/x?y=1' }), {
    status: 301,
    headers: { location: `https://acme.example.com:${https}/x?y=1` }
  })
  t.equal(
    (await visit(http, { hostname: 'elsewhere.example.com' })).status,
    200,
    'HTTP is served where it is not forced'
  )
  t.equal((await visit(http, { hostname: 'plain.example.com' })).status, 200)
  t.equal(
    await leafOf(https, 'plain.example.com'),
    undefined,
    'nothing is issued for a name that has TLS off'
  )

  const { tlsFault } = await until(async () => {
    const report = await driver.report('elsewhere.example.com')
    return report.tlsFault === null ? undefined : report
  }, 'the reason why none is issued')
  t.match(tlsFault, /127\.0\.0\.9/, 'the authority says where it has asked')
  t.match(tlsFault, /let its DNS lead to this server/)
  t.match(await driver.report('plain.example.com'), { tlsAt: null, tlsFault: null })

  // Issued once: another load asks for nothing.
  const serial = (await leafOf(https, 'acme.example.com'))?.serialNumber
  await driver.load(
    table(automatic('acme.example.com'), route({ hostname: 'more.example.com', applicationId: 'a' }))
  )
  t.equal((await leafOf(https, 'acme.example.com'))?.serialNumber, serial)
})

test('an authority that is away, limits or refuses gives its reason, with what helps', async t => {
  const front = makeCertificate({ names: ['IP:127.0.0.1'], subject: '/CN=front' })
  const rootFile = join(await labDirectory(t), 'front.pem')
  await writeFile(rootFile, front.cert)
  const [closed = 0] = await freeTcpPorts(1)
  const cases = [
    { directory: `https://127.0.0.1:${closed}/dir`, reason: /connection refused.*ACME_DIRECTORY_URL/ },
    {
      directory: await refusingAuthority(t, front, {
        status: 429,
        type: 'rateLimited',
        detail: 'too many certificates already issued for "example.com"'
      }),
      reason: /too many certificates already issued.*wait/
    },
    {
      directory: await refusingAuthority(t, front, {
        status: 400,
        type: 'rejectedIdentifier',
        detail: 'policy forbids issuing for this name'
      }),
      reason: /policy forbids.*uploaded certificate/
    }
  ]
  await Promise.all(
    cases.map(async ({ directory, reason }) => {
      const { driver } = await caddyLab(t, {
        environment: { ACME_DIRECTORY_URL: directory, ACME_ROOT_FILE: rootFile }
      })
      await driver.load(table(automatic('www.example.com')))
      const { tlsFault, fault } = await until(async () => {
        const report = await driver.report('www.example.com')
        return report.tlsFault === null ? undefined : report
      }, `a reason like ${reason}`)
      t.match(tlsFault, reason)
      t.equal(fault, null, 'the hostname itself is served')
    })
  )
})

test('uploaded certificates are served for their names, and a broken one harms no other', async t => {
  const { driver, https, directory } = await caddyLab(t)
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  const [wild, exact, other] = [
    makeCertificate({ names: ['DNS:*.example.com'], subject: '/CN=wild' }),
    makeCertificate({ names: ['DNS:www.example.com'], subject: '/CN=exact' }),
    makeCertificate({ names: ['DNS:other.example.org'], subject: '/CN=other' })
  ]
  const custom = (hostname: string, certificateId: string): ProxyRoute =>
    route({ hostname, applicationId: 'a', tls: { mode: 'custom', certificateId } })
  const wanted: RoutingTable = {
    ...table(
      custom('www.example.com', 'wild'),
      custom('other.example.org', 'mixed'),
      custom('lost.example.net', 'lost'),
      custom('*.example.com', 'wild')
    ),
    certificates: [
      { id: 'wild', chainPem: wild.cert, keyPem: wild.key },
      { id: 'exact', chainPem: exact.cert, keyPem: exact.key },
      { id: 'mixed', chainPem: other.cert, keyPem: exact.key }
    ]
  }
  await driver.load(wanted)
  t.equal(
    (await leafOf(https, 'www.example.com'))?.subject,
    'CN=wild',
    'the one that was chosen, although another is for the very name'
  )
  t.match(JSON.parse((await visit(https, { hostname: 'any.example.com', ca: wild.cert })).text), {
    name: 'a'
  })
  t.equal(await leafOf(https, 'other.example.org'), undefined)
  t.match((await driver.report('other.example.org')).fault, /its key is another one.*upload it again/)
  t.match((await driver.report('lost.example.net')).fault, /cannot be decrypted/)
  t.equal((await driver.report('www.example.com')).fault, null)

  await driver.load({
    ...wanted,
    certificates: [
      ...wanted.certificates.slice(0, 2),
      { id: 'mixed', chainPem: other.cert, keyPem: other.key }
    ]
  })
  await until(
    async () => (await leafOf(https, 'other.example.org'))?.subject === 'CN=other',
    'that it is served once it is right'
  )
  t.equal((await driver.report('other.example.org')).fault, null)
  for (const file of ['logs/caddy.log'])
    t.notMatch(await readFile(join(directory, file), 'utf8'), /PRIVATE KEY/, 'no key is in a log')
})

test('an authority of its own issues on purpose, and says so', async t => {
  const { driver, https } = await caddyLab(t, { environment: { BUSBAR_TLS_ISSUER: 'internal' } })
  await driver.load(table(automatic('shop.localhost'), automatic('www.example.com')))
  for (const hostname of ['shop.localhost', 'www.example.com']) {
    const leaf = await until(async () => await leafOf(https, hostname), `a certificate for ${hostname}`)
    t.match(leaf.issuer, /Caddy Local Authority/)
    t.match(await driver.report(hostname), { localAuthority: true, fault: null })
  }
})

test('what keeps all of it from being loaded is told, and another driver takes its place', async t => {
  const { driver } = await caddyLab(t, {
    environment: { ACME_DIRECTORY_URL: 'https://127.0.0.1:1/dir', ACME_ROOT_FILE: '/nowhere/root.pem' }
  })
  t.equal(driver.fallback, undefined, 'nothing is known to be wrong yet')
  await t.rejects(driver.load(table(automatic('www.example.com'))), /cannot read ACME_ROOT_FILE/)
  t.equal(driver.fallback, true)
  t.match(driver.fault(), /ACME_ROOT_FILE/)
  t.same(driver.ports(), { http: null, https: null })
})
