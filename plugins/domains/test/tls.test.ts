import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { makeCertificate } from '../../../lab/certificates.js'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { ablePlatform, makeApplication } from './lab.js'

takeAwayFromEngine()

const dayMs = 86_400_000

test('a domain is served with an uploaded certificate, which is not deleted meanwhile', async t => {
  const { k, driver } = await ablePlatform(t)
  const admin = await k.as.session()
  const owner = await k.as.session('ann')
  const { domains: all, path } = await makeApplication(owner)
  const upload = async (name: string, names: string[], days = 90): Promise<string> => {
    const pair = makeCertificate({ names, until: new Date(Date.now() + days * dayMs) })
    const body = { name, cert_pem: pair.cert, key_pem: pair.key }
    return (await admin.post('/api/certificates', body)).body.id as string
  }
  const [wildcard, soon, other] = [
    await upload('wildcard', ['DNS:*.example.com']),
    await upload('soon', ['DNS:a.example.com'], 5),
    await upload('other', ['DNS:other.test'])
  ]
  t.match(await owner.post(all, { hostname: 'a.example.com', ssl_mode: 'custom', certificate_id: other }), {
    status: 400,
    body: { code: 'E_DOMAIN_CERTIFICATE_COVERAGE', field: 'certificate_id' }
  })
  for (const certificate_id of ['nothing', 'a3bb189e-8bf9-4c8c-9f3b-000000000000'])
    t.match(await owner.post(all, { hostname: 'a.example.com', ssl_mode: 'custom', certificate_id }), {
      status: 400,
      body: { code: 'E_DOMAIN_CERTIFICATE' }
    })
  t.match(await owner.post(all, { hostname: '*.example.com' }), {
    status: 400,
    body: { code: 'E_DOMAIN_WILDCARD_TLS' }
  })
  const custom = { hostname: 'a.example.com', ssl_mode: 'custom', certificate_id: wildcard }
  const added = await owner.post(all, custom)
  t.match(added, { status: 201, body: { ssl_enabled: true, force_https: true, tls_status: 'unknown' } })
  t.match(driver.table?.routes, [
    { hostname: 'a.example.com', tls: { mode: 'custom', certificateId: wildcard } }
  ])
  t.match(
    driver.table?.certificates,
    [{ id: wildcard, keyPem: /PRIVATE KEY/ }],
    'served before it is answered'
  )
  t.match(await owner.post(all, { ...custom, path: '/b', certificate_id: soon }), {
    status: 400,
    body: { code: 'E_DOMAIN_TLS_MIXED' }
  })

  const one = `${all}/${added.body.id}`
  const becomes = async (status: string): Promise<Record<string, unknown>> =>
    await until(async () => {
      const { body } = await owner.get(one)
      return body.tls_status === status ? body : undefined
    }, `the status ${status}`)
  t.match(await becomes('active'), { tls_issuer: 'lab', tls_error: null })
  t.match((await owner.get('/api/domains/tls')).body, [
    { certificate_name: 'wildcard', tls_status: 'active' }
  ])
  t.match((await admin.get('/api/certificates')).body, [
    { name: 'other', domain_count: 0 },
    { name: 'soon', domain_count: 0 },
    { name: 'wildcard', domain_count: 1 }
  ])
  t.match(await admin.delete(`/api/certificates/${wildcard}`), {
    status: 409,
    body: { code: 'E_CERTIFICATE_IN_USE', error: /a\.example\.com/ }
  })

  await owner.put(one, { ...custom, certificate_id: soon })
  t.match(await becomes('expiring'), { tls_error: null })
  await until(
    async () => JSON.stringify((await admin.get('/api/notifications')).body).includes('tls.expiring'),
    'that admins are told'
  )
  t.equal((await admin.delete(`/api/certificates/${wildcard}`)).status, 204)

  await owner.put(one, { hostname: 'a.example.com', ssl_mode: 'automatic' })
  t.match(await becomes('pending'), { tls_issuer: null, certificate_id: null })
  await owner.delete(path)
  await k.runRemovalsNow()
  await until(
    async () => driver.table?.routes.length === 0,
    'that nothing is served of a deleted application'
  )
})

test('a driver that refuses what is wanted is told of, and served again when it takes it', async t => {
  const { k, driver } = await ablePlatform(t)
  const owner = await k.as.session('ann')
  const { domains: all } = await makeApplication(owner)
  driver.refuseWith('the admin API does not answer')
  const added = await owner.post(all, { hostname: 'a.example.com', ssl_mode: 'off' })
  t.equal(added.status, 201, 'it is wanted all the same')
  t.equal(driver.table?.routes.length ?? 0, 0)
  driver.refuseWith(null)
  await until(async () => driver.table?.routes.length === 1, 'that it is served')
})

test('the password of basic_auth is in no answer, and stays where it is not sent', async t => {
  const { k, driver } = await ablePlatform(t)
  const owner = await k.as.session('ann')
  const { domains: all } = await makeApplication(owner)
  const { body: domain } = await owner.post(all, { hostname: 'a.example.com', ssl_mode: 'off' })
  const features = `${all}/${domain.id}/features`
  const hashed_password = `$2b$10$${'a'.repeat(53)}`
  const put = async (config: object) => await owner.put(features, { feature_type: 'basic_auth', config })
  t.match(await put({ username: 'ann', hashed_password }), {
    status: 200,
    body: { config: { username: 'ann' } }
  })
  t.notMatch(JSON.stringify([(await owner.get(features)).body, (await owner.get(all)).body]), 'aaaa')
  t.equal((await put({ username: 'ann' })).status, 200)
  t.match(driver.table?.routes[0]?.features, [{ type: 'basic_auth', hashedPassword: hashed_password }])
  t.equal((await put({ username: 'bob' })).status, 400, 'another user needs another password')
})
