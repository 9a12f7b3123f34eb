import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type LabCertificate, makeCertificate } from '../../../lab/certificates.js'
import { takeAwayFromEngine } from '../../../lab/engine.js'

takeAwayFromEngine()

const url = '/api/certificates'
const upload = (name: string, { cert, key }: LabCertificate) => ({ name, cert_pem: cert, key_pem: key })

async function platform(t: Test): Promise<TestKernel> {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  return k
}

test('certificates are uploaded, listed, found for a hostname and deleted', async t => {
  const k = await platform(t)
  const admin = await k.as.session()
  const root = makeCertificate({
    names: [],
    subject: '/CN=Example Root',
    extensions: ['basicConstraints=CA:TRUE']
  })
  const leaf = makeCertificate({
    names: ['DNS:*.Example.com', 'DNS:example.com', 'IP:192.0.2.1'],
    issuer: root
  })
  const sent = { cert: `some words\n${leaf.cert}${root.cert}`, key: leaf.key }

  const made = await admin.post(url, upload(' shop ', sent))
  t.equal(made.status, 201)
  t.match(made.body, {
    name: 'shop',
    issuer: 'CN=Example Root',
    subjects: ['*.example.com', 'example.com', '192.0.2.1'],
    domain_count: 0
  })
  t.match(await admin.post(url, upload('shop', sent)), {
    status: 409,
    body: { code: 'E_CERTIFICATE_NAME_TAKEN', field: 'name' }
  })
  const expired = makeCertificate({ until: new Date(Date.now() - 60_000) })
  t.equal((await admin.post(url, upload('expired', expired))).status, 201, 'one that has expired is taken')
  t.same(
    ((await admin.get(url)).body as Array<{ name: string }>).map(({ name }) => name),
    ['expired', 'shop'],
    'by name'
  )

  const member = await k.as.token('read', { user: 'ann' })
  const usable = async (hostname: string) =>
    ((await member.get(`${url}/usable?hostname=${hostname}`)).body as Array<{ name: string }>).map(
      ({ name }) => name
    )
  t.same(await usable('WWW.example.com.'), ['expired', 'shop'])
  t.same(await usable('example.com'), ['shop'])
  t.same(await usable('a.b.example.com'), [], 'a wildcard is for one label')
  t.same(await usable('a%20b'), [])
  t.same(Object.keys((await member.get(`${url}/usable?hostname=example.com`)).body[0]).toSorted(), [
    'id',
    'issuer',
    'name',
    'not_after'
  ])
  for (const query of ['', '?hostname=', '?hostname=%20'])
    t.match(await member.get(`${url}/usable${query}`), { status: 400, body: { field: 'hostname' } })

  t.equal((await admin.delete(`${url}/${made.body.id}`)).status, 204)
  t.equal((await admin.delete(`${url}/${made.body.id}`)).status, 404)
  const { body } = await admin.get('/api/audit-logs?resource_type=certificate')
  t.match(JSON.stringify(body), 'delete_certificate', 'both are in the audit log')
  t.notMatch(JSON.stringify(body), 'BEGIN', 'without what was sent')
})

test('certificates are for admins, and keys are in no answer and no table in clear', async t => {
  const k = await platform(t)
  const admin = await k.as.session()
  const pair = makeCertificate()
  const made = await admin.post(url, upload('one', pair))
  const secret = pair.key.split('\n')[1] ?? ''
  t.notMatch(JSON.stringify([made.body, (await admin.get(url)).body]), secret)
  const [stored] = await k.query('select chain, private_key from certificates.certificate')
  t.match(stored, { chain: /^b1\./, private_key: /^b1\./ }, 'both are sealed')
  const member = await k.as.session('ann')
  t.equal((await member.get(url)).status, 403)
  t.equal((await member.post(url, upload('two', pair))).status, 403)
  t.equal((await member.delete(`${url}/${made.body.id}`)).status, 403)
  t.equal((await (await k.as.token('read')).post(url, upload('two', pair))).status, 403)
})

test('what cannot be served is refused with the field and what helps', async t => {
  const k = await platform(t)
  const admin = await k.as.session()
  const pair = makeCertificate()
  const other = makeCertificate()
  const root = makeCertificate({ subject: '/CN=Root', extensions: ['basicConstraints=CA:TRUE'] })
  const leaf = makeCertificate({ issuer: root })
  const cut = pair.cert.slice(0, pair.cert.length / 2)
  const refused: ReadonlyArray<readonly [string, Partial<ReturnType<typeof upload>>, string, string]> = [
    ['no PEM', { cert_pem: 'hello' }, 'E_CERTIFICATE_PEM', 'cert_pem'],
    ['PEM that is cut off', { cert_pem: cut }, 'E_CERTIFICATE_PEM', 'cert_pem'],
    [
      'PEM of something else',
      { cert_pem: pair.cert.replaceAll('CERTIFICATE', 'X') },
      'E_CERTIFICATE_PEM',
      'cert_pem'
    ],
    [
      'no DER within',
      { cert_pem: '-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----' },
      'E_CERTIFICATE_UNREADABLE',
      'cert_pem'
    ],
    ['the key of another', { key_pem: other.key }, 'E_CERTIFICATE_KEY_MISMATCH', 'key_pem'],
    ['no key', { key_pem: pair.cert }, 'E_CERTIFICATE_KEY', 'key_pem'],
    [
      'a key with a passphrase',
      { key_pem: pair.key.replaceAll('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY') },
      'E_CERTIFICATE_KEY_ENCRYPTED',
      'key_pem'
    ],
    ['an issuer that is none', { cert_pem: pair.cert + other.cert }, 'E_CERTIFICATE_CHAIN_ORDER', 'cert_pem'],
    [
      'the issuer first',
      { cert_pem: root.cert + leaf.cert, key_pem: leaf.key },
      'E_CERTIFICATE_CHAIN_ORDER',
      'cert_pem'
    ],
    ['too many', { cert_pem: pair.cert.repeat(9) }, 'E_CERTIFICATE_CHAIN_LENGTH', 'cert_pem'],
    ['a name of blanks', { name: '  ' }, 'E_CERTIFICATE_NAME', 'name']
  ]
  for (const [title, change, code, field] of refused) {
    const answer = await admin.post(url, { ...upload('x', pair), ...change })
    t.match(answer, { status: 400, body: { code, field } }, title)
    if (field !== 'name') t.type(answer.body.remedy, 'string', title)
  }
  const unfit: ReadonlyArray<readonly [string, Parameters<typeof makeCertificate>[0], string]> = [
    ['no SAN', { names: [] }, 'E_CERTIFICATE_NO_SAN'],
    ['a SAN that names no host', { names: ['email:a@example.com'] }, 'E_CERTIFICATE_NO_SAN'],
    ['one for clients', { extensions: ['extendedKeyUsage=clientAuth'] }, 'E_CERTIFICATE_USAGE'],
    ['Ed25519', { key: ['-algorithm', 'ED25519'] }, 'E_CERTIFICATE_KIND'],
    ['a small key', { key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024'] }, 'E_CERTIFICATE_KIND'],
    [
      'another curve',
      { key: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:secp256k1'] },
      'E_CERTIFICATE_KIND'
    ]
  ]
  for (const [title, request, code] of unfit) {
    const answer = await admin.post(url, upload('x', makeCertificate(request)))
    t.match(answer, { status: 400, body: { code, field: 'cert_pem' } }, title)
  }
  t.match(await admin.post(url, { ...upload('x', pair), cert_pem: 'x'.repeat(65_537) }), {
    status: 400,
    body: { field: 'cert_pem' }
  })
  t.same((await admin.get(url)).body, [], 'nothing was kept')
})

test('a key of the older forms is taken, with what openssl writes before it', async t => {
  const k = await platform(t)
  const admin = await k.as.session()
  const rsa = makeCertificate({ key: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'] })
  t.equal((await admin.post(url, upload('rsa', rsa))).status, 201)
  const ec = makeCertificate()
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
  t.equal((await admin.post(url, upload('ec', { ...ec, key: parameters + ec.key }))).status, 201)
})
