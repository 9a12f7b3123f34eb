import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { ablePlatform, makeApplication } from './lab.js'

takeAwayFromEngine()

test('domains are added, read, changed and removed', async t => {
  const k = await createTestKernel({ environment: { PUBLIC_BASE_URL: 'https://busbar.example.net' } })
  t.teardown(() => k.close())
  const owner = await k.as.session('ann')
  const application = await makeApplication(owner)
  const all = application.domains

  const added = await owner.post(all, { hostname: ' Bücher.Example.com. ', path: 'shop/', strip_path: true })
  t.match(added, {
    status: 201,
    body: {
      application_id: application.id,
      hostname: 'xn--bcher-kva.example.com',
      path: '/shop',
      strip_path: true,
      internal_path: '',
      container_port: null,
      ssl_enabled: false,
      ssl_mode: 'off',
      force_https: false,
      certificate_id: null,
      advanced_config: null,
      caddy_config_id: null,
      tls_status: 'disabled'
    }
  })
  const one = `${all}/${added.body.id}`
  t.match((await owner.get(one)).body, { id: added.body.id, route_features: [] })
  t.match((await owner.get(all)).body, [{ id: added.body.id, route_features: [] }])
  t.match(
    (await owner.put(one, { hostname: 'b.example.com', container_port: 9000 })).body,
    { hostname: 'b.example.com', path: '/shop', strip_path: true, container_port: 9000 },
    'paths stay where they are left out'
  )
  t.match((await owner.put(one, { hostname: 'b.example.com', path: '/', strip_path: false })).body, {
    path: '/',
    strip_path: false,
    container_port: null
  })

  const stranger = await k.as.session('bob')
  t.equal((await stranger.get(one)).status, 404)
  t.same((await stranger.get('/api/domains/tls')).body, [])
  t.match((await owner.get('/api/domains/tls')).body, [
    { id: added.body.id, hostname: 'b.example.com', tls_status: 'disabled', certificate_name: '' }
  ])
  t.equal((await (await k.as.session()).get('/api/domains/tls')).body.length, 1, 'admins see all')

  t.equal((await owner.post(`${one}/tls/recheck`)).status, 202)
  const token = await k.as.token('write', { user: 'ann' })
  t.equal((await token.delete(one)).status, 403, 'a token removes none')
  t.match(await owner.delete(one), { status: 200, body: { status: 'deleted' } })
  t.equal((await owner.get(one)).status, 404)
  t.equal((await owner.delete(one)).status, 404)
  const actions = await k.query(
    "select action from kernel.audit_log where resource_type = 'domain' order by created_at"
  )
  t.same(
    actions.map(row => (row as { action: string }).action),
    ['add_domain', 'update_domain', 'update_domain', 'recheck_domain', 'remove_domain', 'remove_domain'],
    'also one that failed'
  )
})

test('a hostname is of one project, and nobody is told whose', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, bob] = [await k.as.session('ann'), await k.as.session('bob')]
  const hers = await makeApplication(ann)
  const second = await makeApplication(ann, hers.projectId)
  const his = await makeApplication(bob)
  t.equal((await ann.post(hers.domains, { hostname: 'shop.example.com' })).status, 201)

  const refused = await bob.post(his.domains, { hostname: 'SHOP.example.com', path: '/other' })
  t.match(refused, { status: 409, body: { code: 'E_DOMAIN_TAKEN', field: 'hostname' } })
  t.notMatch(JSON.stringify(refused.body), /ann|web|P\b|[0-9a-f]{8}-/, 'not a word of the other project')
  for (const [title, hostname] of [['a wildcard over it', '*.example.com']] as const)
    t.match(
      await bob.post(his.domains, { hostname }),
      { status: 409, body: { code: 'E_DOMAIN_TAKEN' } },
      title
    )
  t.equal(
    (await ann.post(second.domains, { hostname: '*.example.com' })).status,
    201,
    'her own may lie above'
  )
  t.match(
    await bob.post(his.domains, { hostname: 'free.example.com' }),
    { status: 409, body: { code: 'E_DOMAIN_TAKEN' } },
    'and a name below a wildcard of another is not free'
  )
  t.equal(
    (await bob.post(his.domains, { hostname: 'a.free.example.com' })).status,
    201,
    'two labels below it is'
  )

  t.match(await ann.post(second.domains, { hostname: 'shop.example.com' }), {
    status: 409,
    body: { code: 'E_DOMAIN_DUPLICATE' }
  })
  t.equal((await ann.post(second.domains, { hostname: 'shop.example.com', path: '/api' })).status, 201)
  const taken = (await bob.get(his.domains)).body[0]
  t.match(await bob.put(`${his.domains}/${taken.id}`, { hostname: 'shop.example.com' }), {
    status: 409,
    body: { code: 'E_DOMAIN_TAKEN' }
  })
  const both = await Promise.all([
    bob.post(his.domains, { hostname: 'race.test' }),
    ann.post(hers.domains, { hostname: 'race.test' })
  ])
  t.same(both.map(({ status }) => status).toSorted(), [201, 409], 'of two at once one has it')

  await ann.delete(hers.path)
  await k.runRemovalsNow()
})

test('what is changed of TLS at one path of a hostname holds for all of them in the application', async t => {
  const { k } = await ablePlatform(t)
  const ann = await k.as.session('ann')
  const first = await makeApplication(ann)
  const hostname = 'shop.example.com'
  const add = async (all: string, path: string, ssl_mode: string) =>
    await ann.post(all, { hostname, path, ssl_mode })
  const root = await add(first.domains, '/', 'off')
  t.equal((await add(first.domains, '/api', 'off')).status, 201)
  t.match(
    await add(first.domains, '/docs', 'automatic'),
    { status: 400, body: { code: 'E_DOMAIN_TLS_MIXED', remedy: /change it at one of them/ } },
    'a new path has the mode of those that are there'
  )
  const one = `${first.domains}/${root.body.id}`
  t.match(await ann.put(one, { hostname, ssl_mode: 'automatic' }), { status: 200 })
  const modes = async () =>
    ((await ann.get(first.domains)).body as Array<Record<string, unknown>>).map(
      ({ path, ssl_mode, force_https }) => [path, ssl_mode, force_https]
    )
  t.same(await modes(), [
    ['/', 'automatic', true],
    ['/api', 'automatic', true]
  ])
  const second = await makeApplication(ann, first.projectId)
  t.equal((await add(second.domains, '/other', 'automatic')).status, 201)
  t.match(await ann.put(one, { hostname, ssl_mode: 'off' }), {
    status: 400,
    body: { code: 'E_DOMAIN_TLS_MIXED' }
  })
  t.same(
    (await modes()).map(([, mode]) => mode),
    ['automatic', 'automatic'],
    'those of another application do not follow'
  )
})

test('what leads nowhere or to the platform is refused with the field and what helps', async t => {
  const k = await createTestKernel({ environment: { PUBLIC_BASE_URL: 'https://busbar.example.net' } })
  t.teardown(() => k.close())
  const owner = await k.as.session('ann')
  const { domains: all } = await makeApplication(owner)
  const hostnames: ReadonlyArray<readonly [hostname: string, code: string]> = [
    ['busbar.example.net', 'E_DOMAIN_RESERVED'],
    ['*.example.net', 'E_DOMAIN_RESERVED'],
    ['localhost', 'E_DOMAIN_HOSTNAME'],
    ['http://a.example.com', 'E_DOMAIN_HOSTNAME'],
    ['a.example.com:80', 'E_DOMAIN_HOSTNAME'],
    ['192.0.2.1', 'E_DOMAIN_HOSTNAME'],
    ['a..example.com', 'E_DOMAIN_HOSTNAME'],
    ['-a.example.com', 'E_DOMAIN_HOSTNAME'],
    ['a_b.example.com', 'E_DOMAIN_HOSTNAME'],
    ['a.*.com', 'E_DOMAIN_HOSTNAME'],
    ['*.com', 'E_DOMAIN_HOSTNAME'],
    ['a.example.c0m', 'E_DOMAIN_HOSTNAME'],
    ['a.onion', 'E_DOMAIN_HOSTNAME'],
    ['xn--a.example.com', 'E_DOMAIN_HOSTNAME'],
    [`${'a'.repeat(64)}.example.com`, 'E_DOMAIN_HOSTNAME'],
    [`${'a.'.repeat(130)}com`, 'E_DOMAIN_HOSTNAME'],
    ['a%2eb.example.com', 'E_DOMAIN_HOSTNAME'],
    ['   ', 'E_DOMAIN_HOSTNAME']
  ]
  for (const [hostname, code] of hostnames) {
    const answer = await owner.post(all, { hostname })
    t.match(answer, { status: 400, body: { code, field: 'hostname', remedy: String } }, hostname)
  }
  const hostname = 'a.example.com'
  const rules: ReadonlyArray<readonly [body: object, status: number, code: string, field: string]> = [
    [{ path: '/a//b' }, 400, 'E_DOMAIN_PATH', 'path'],
    [{ path: '/a/../b' }, 400, 'E_DOMAIN_PATH', 'path'],
    [{ path: '/ä' }, 400, 'E_DOMAIN_PATH', 'path'],
    [{ internal_path: '/a?b' }, 400, 'E_DOMAIN_PATH', 'internal_path'],
    [{ container_port: 0 }, 400, 'E_DOMAIN_PORT', 'container_port'],
    [{ ssl_mode: 'sometimes' }, 400, 'E_DOMAIN_SSL_MODE', 'ssl_mode'],
    [{ ssl_mode: 'dns_challenge' }, 400, 'E_DOMAIN_DNS_CHALLENGE', 'ssl_mode'],
    [{ ssl_mode: 'off', ssl_enabled: true }, 400, 'E_DOMAIN_SSL_CONTRADICTION', 'ssl_enabled'],
    [{ ssl_mode: 'off', force_https: true }, 400, 'E_DOMAIN_FORCE_HTTPS', 'force_https'],
    [{ ssl_mode: 'custom' }, 400, 'E_DOMAIN_CERTIFICATE_MISSING', 'certificate_id'],
    [{ ssl_mode: 'automatic' }, 409, 'E_PROXY_UNABLE', 'ssl_mode'],
    [{ ssl_enabled: true }, 409, 'E_PROXY_UNABLE', 'ssl_mode'],
    [{ advanced_config: {} }, 400, 'E_DOMAIN_ADVANCED_CONFIG', 'advanced_config'],
    [{ advanced_config: [{ handler: 'exec' }] }, 400, 'E_DOMAIN_ADVANCED_CONFIG', 'advanced_config'],
    [
      { advanced_config: [{ handler: 'subroute', routes: [{ handle: [{ handler: 'file_server' }] }] }] },
      400,
      'E_DOMAIN_ADVANCED_CONFIG',
      'advanced_config'
    ],
    [{ advanced_config: [{ handler: 'headers' }] }, 409, 'E_PROXY_UNABLE', 'advanced_config']
  ]
  for (const [body, status, code, field] of rules)
    t.match(
      await owner.post(all, { hostname, ...body }),
      { status, body: { code, field } },
      JSON.stringify(body)
    )
  t.match((await owner.post(all, { hostname, ssl_mode: 'automatic' })).body.remedy, /Caddy/)
  t.same((await owner.get(all)).body, [], 'nothing was kept')
})

test('route features are checked when they are saved', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const owner = await k.as.session('ann')
  const { domains: all } = await makeApplication(owner)
  const { body: domain } = await owner.post(all, { hostname: 'a.example.com' })
  const features = `${all}/${domain.id}/features`
  const put = async (feature_type: string, config: unknown) =>
    await owner.put(features, { feature_type, config })

  const bad: ReadonlyArray<readonly [type: string, config: unknown]> = [
    ['ip_allowlist', { ranges: [] }],
    ['ip_allowlist', { ranges: ['10.0.0.0/33'] }],
    ['ip_allowlist', { ranges: ['example.com'] }],
    ['ip_allowlist', { ranges: ['10.0.0.0/8'], more: 1 }],
    ['redirect', { from: 'a', to: '/b' }],
    ['redirect', { from: '/a', to: 'javascript:1' }],
    ['redirect', { from: '/a', to: '/b', status_code: 200 }],
    ['redirect', { from: '/a', to: '/b\r\nSet-Cookie: x' }],
    ['headers', {}],
    ['headers', { request: { set: { 'a b': ['c'] } } }],
    ['headers', { request: { set: { a: ['c\r\nd: e'] } } }],
    ['headers', { response: { set: { 'Content-Length': ['1'] } } }],
    ['headers', { response: { set: { 'Set-Cookie': ['token=x'] } } }],
    ['basic_auth', { username: 'a', hashed_password: 'secret' }],
    ['basic_auth', { username: 'a', hashed_password: `$2b$31$${'a'.repeat(53)}` }],
    ['rate_limit', { rate: 'fast' }],
    ['rate_limit', { rate: '10/s', key: 'header.a b' }],
    ['rate_limit', { rate: '10/s', key: '{http.request.uri}' }]
  ]
  for (const [type, config] of bad)
    t.match(
      await put(type, config),
      { status: 400, body: { code: 'E_FEATURE_CONFIG', field: 'config' } },
      type
    )
  t.match(await put('magic', {}), { status: 400, body: { code: 'E_FEATURE_TYPE', field: 'feature_type' } })
  const limited = await put('rate_limit', { rate: '10/s', key: 'header.X-Api-Key' })
  t.match(limited, { status: 200, body: { config: { rate: '10/s' } } })
  t.equal((await owner.delete(`${features}/${limited.body.id}`)).status, 200)

  const made = await put('ip_allowlist', { ranges: ['10.0.0.0/8'] })
  t.match(made, { status: 200, body: { feature_type: 'ip_allowlist', enabled: true, domain_id: domain.id } })
  const again = await put('ip_allowlist', { ranges: ['::1'] })
  t.equal(again.body.id, made.body.id, 'one of each type')
  t.match((await owner.get(features)).body, [{ config: { ranges: ['::1'] } }])
  t.match((await owner.get(all)).body[0].route_features, [{ feature_type: 'ip_allowlist' }])
  t.equal((await owner.delete(`${features}/${domain.id}`)).status, 404)
  t.match(await owner.delete(`${features}/${made.body.id}`), { status: 200, body: { status: 'deleted' } })
  t.same((await owner.get(features)).body, [])
})
