import { request } from 'node:http'
import { createTestKernel, type TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { makeCertificate } from '../../../lab/certificates.js'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { ablePlatform, makeApplication } from './lab.js'

takeAwayFromEngine()

const panel = 'panel.example.com'

/** The port of the built-in proxy, as an address with it shows. */
async function proxyPort(
  client: TestClient,
  application: { domains: string; path: string }
): Promise<number> {
  await client.post(application.domains, { hostname: 'www.example.com', ssl_mode: 'off' })
  return await until(async () => {
    const { body } = await client.get(`${application.path}/addresses`)
    const port = Number(new URL(body[0]?.url ?? 'http://x/').port)
    return port > 0 ? port : undefined
  }, 'an address with the port of the proxy')
}

/** One request through the proxy, from an address of this machine that nothing else of it has. */
async function throughProxy(
  port: number,
  path: string,
  headers: Record<string, string>,
  body?: object
): Promise<{ readonly status: number; readonly text: string }> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        localAddress: '127.0.0.9',
        port,
        path,
        method: body === undefined ? 'GET' : 'POST',
        headers: { Host: `${panel}:${port}`, 'content-type': 'application/json', ...headers }
      },
      answer => {
        let text = ''
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      }
    )
    outgoing.on('error', reject)
    outgoing.end(body && JSON.stringify(body))
  })
}

const ipOf = async (k: TestKernel, slug: string): Promise<unknown> =>
  (
    (await k.query(
      `select ip_address from kernel.audit_log where action = 'create_project'
       and resource_id::text = (select id::text from projects.project where slug = '${slug}')`
    )) as Array<{ ip_address: string }>
  )[0]?.ip_address

test('the platform is served by its own hostname, with sessions and sockets, and knows who asks', async t => {
  const k = await createTestKernel({ environment: { DASHBOARD_DOMAIN: panel } })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const application = await makeApplication(ann)
  const port = await proxyPort(ann, application)
  t.match(await ann.post(application.domains, { hostname: panel }), {
    status: 400,
    body: { code: 'E_DOMAIN_RESERVED', field: 'hostname' }
  })
  const { cookie = '', ...csrf } = ann.credential
  await until(
    async () => (await throughProxy(port, '/api/auth/me', { cookie })).status === 200,
    'that the platform is served'
  )
  const claimed = { 'x-forwarded-for': '203.0.113.7', 'x-busbar-proxy': 'guess' }
  const make = async (slug: string) =>
    await throughProxy(port, '/api/projects', { cookie, ...csrf, ...claimed }, { name: slug, slug })
  t.equal((await make('by-proxy')).status, 201)
  t.equal(
    await ipOf(k, 'by-proxy'),
    '127.0.0.9',
    'the client, and neither the proxy nor what the client claims'
  )
  await ann.post('/api/projects', { name: 'direct', slug: 'direct' }, { headers: claimed })
  t.equal(await ipOf(k, 'direct'), '127.0.0.1', 'nobody else is believed')
  t.equal((await throughProxy(port, '/', { Host: 'other.example.com' })).status, 404)

  const socketFrom = async (origin: string): Promise<string> =>
    await new Promise(resolve => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/api/ws`, {
        headers: { Host: `${panel}:${port}`, cookie, origin }
      })
      socket.once('open', () => {
        socket.terminate()
        resolve('open')
      })
      socket.once('error', ({ message }) => resolve(message))
    })
  t.equal(await socketFrom(`http://${panel}:${port}`), 'open')
  t.match(await socketFrom('http://evil.example.com'), /403/)

  const admin = await k.as.session()
  t.match((await admin.get('/api/server/dashboard-tls')).body, {
    domain: panel,
    ssl_mode: 'off',
    tls_status: 'disabled',
    tls_issuer: '',
    tls_not_after: null
  })
  t.equal((await ann.get('/api/server/dashboard-tls')).status, 403)
})

test('the certificate by which the platform itself is served is not deleted', async t => {
  const id = '11111111-1111-4111-8111-111111111111'
  const k = await createTestKernel({
    environment: { DASHBOARD_DOMAIN: panel, DASHBOARD_SSL_MODE: 'custom', DASHBOARD_CERTIFICATE_ID: id }
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const upload = async (name: string): Promise<string> => {
    const pair = makeCertificate({ names: [`DNS:${panel}`], until: new Date(Date.now() + 90 * 86_400_000) })
    const { body } = await admin.post('/api/certificates', { name, cert_pem: pair.cert, key_pem: pair.key })
    return body.id as string
  }
  const [own, other] = [await upload('own'), await upload('other')]
  // The setting names it before there is one.
  await k.query('update certificates.certificate set id = $1 where id = $2', [id, own])
  t.match(await admin.delete(`/api/certificates/${id}`), {
    status: 409,
    body: { code: 'E_CERTIFICATE_IN_USE', error: new RegExp(panel) }
  })
  t.equal((await admin.delete(`/api/certificates/${other}`)).status, 204)
})

test('an operator sees what the proxy serves, and has it compared with what is stored', async t => {
  const k = await createTestKernel({ environment: { BUSBAR_PUBLIC_IP: '203.0.113.9' } })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const application = await makeApplication(admin)
  const port = await proxyPort(admin, application)
  t.match((await admin.get('/api/server/dashboard-tls')).body, { domain: '', tls_status: 'disabled' })
  t.same((await admin.get('/api/maintenance/server-ip')).body, { effective: '203.0.113.9', source: 'env' })
  const before = (await admin.get('/api/maintenance/proxy')).body
  t.match(before, { interval_seconds: 0, last_error: '', total_drift: 0, last_run_at: String })
  t.ok(before.run_count > 0)

  // As if somebody had changed the database by hand, or a signal had been lost.
  await k.query("update domains.domain set hostname = 'moved.example.com'")
  await k.query(
    "insert into domains.domain select (jsonb_populate_record(domain, jsonb_build_object('id', gen_random_uuid(), 'hostname', 'new.example.com'))).* from domains.domain domain"
  )
  const status = async (hostname: string): Promise<number> =>
    (await throughProxy(port, '/', { Host: hostname })).status
  t.same([await status('new.example.com'), await status('www.example.com')], [404, 503])
  const done = await admin.post('/api/maintenance/proxy/reconcile')
  t.match(done, {
    status: 200,
    body: { last_added: 1, last_updated: 1, last_removed: 0, total_drift: 2, last_error: '' }
  })
  t.same([await status('new.example.com'), await status('www.example.com')], [503, 404])
  t.match((await admin.post('/api/maintenance/proxy/reconcile')).body, { last_added: 0, total_drift: 2 })
  const [record] = await k.query("select action from kernel.audit_log where action = 'reconcile_proxy'")
  t.ok(record, 'it is in the audit log')

  t.match((await admin.get('/api/server/services')).body, {
    total: 5,
    services: [
      { name: 'Built-in forwarder', status: 'running' },
      { name: 'Docker Engine' },
      { name: 'Builder' },
      { name: 'PostgreSQL', status: 'running' },
      { name: 'Job queue', status: 'running' }
    ]
  })
  for (const service of ['caddy', 'busbar', ''])
    t.match(await admin.post(`/api/maintenance/restart?service=${service}`), {
      status: 400,
      body: { code: 'E_SERVICE_RESTART', field: 'service', error: /these can: none/ }
    })
  t.match(await admin.get('/api/maintenance/logs?service=caddy'), {
    status: 400,
    body: { code: 'E_SERVICE_LOGS' }
  })
  await k.disable('proxy-forwarder')
  t.match((await admin.get('/api/maintenance/proxy')).body, { last_error: /no proxy driver is on/ })
  t.match(await admin.post('/api/maintenance/proxy/reconcile'), {
    status: 409,
    body: { code: 'E_PROXY_NONE', remedy: /proxy-forwarder/ }
  })
  t.match((await admin.get('/api/server/services')).body.services[0], { name: 'Proxy', status: 'error' })
})

test('how the platform itself is served is looked at when somebody asks', async t => {
  const { k, driver } = await ablePlatform(t, { DASHBOARD_DOMAIN: panel })
  const admin = await k.as.session()
  const look = async () => (await admin.get('/api/server/dashboard-tls')).body
  await until(() => driver.table?.platform?.hostname === panel, 'that the driver has been told of it')
  t.match(driver.table?.platform, { forceHttps: true, tls: { mode: 'automatic' } })
  t.match(await look(), { domain: panel, ssl_mode: 'automatic', tls_status: 'pending', tls_not_after: null })
  const until90 = new Date(Date.now() + 90 * 86_400_000)
  const pair = makeCertificate({ names: [`DNS:${panel}`], until: until90 })
  driver.issue(pair)
  t.match(await look(), { tls_status: 'active', tls_issuer: 'lab', tls_not_after: String, tls_error: '' })
  driver.issue(pair, true)
  t.match(await look(), { tls_status: 'local' })
  driver.issue(makeCertificate({ names: ['DNS:other.example.com'], until: until90 }))
  t.match(await look(), { tls_status: 'failed', tls_error: /not for this hostname/ })
})

test('a driver with a process of its own is restarted, read and asked to compare', async t => {
  const lines: number[] = []
  let restarts = 0
  let refusal: string | null = null
  let runs = 0
  const reconciled = () => ({
    intervalSeconds: 30,
    lastRunAt: '2026-01-01T00:00:00.000Z',
    lastDurationMs: 5,
    lastAdded: 1,
    lastUpdated: 0,
    lastRemoved: 0,
    lastError: null,
    runCount: runs,
    totalDrift: 7
  })
  const { k, driver } = await ablePlatform(t)
  Object.assign(driver, {
    reconciler: {
      status: reconciled,
      reconcile: async () => {
        runs += 1
        if (refusal !== null) throw new Error(refusal)
        return reconciled()
      }
    },
    restart: async () => {
      if (refusal !== null) throw new Error(refusal)
      restarts += 1
    },
    logs: async (most: number) => {
      lines.push(most)
      return `${'line\n'.repeat(1500)}the last one\n`
    }
  })
  const admin = await k.as.session()
  t.match((await admin.get('/api/maintenance/proxy')).body, { interval_seconds: 30, total_drift: 7 })
  t.match((await admin.post('/api/maintenance/proxy/reconcile')).body, { run_count: 1, last_added: 1 })
  t.match(await admin.post('/api/maintenance/restart?service=able'), {
    status: 200,
    body: { service: 'able', status: 'restarted' }
  })
  t.equal(restarts, 1)
  refusal = 'its process is not ours'
  t.match(await admin.post('/api/maintenance/restart?service=able'), {
    status: 502,
    body: { code: 'E_SERVICE_REFUSED', error: /its process is not ours/ }
  })
  t.match((await admin.post('/api/maintenance/proxy/reconcile')).body, {
    last_error: /its process is not ours/
  })
  t.match(await admin.post('/api/maintenance/restart?service=redis'), {
    status: 400,
    body: { error: /these can: able/ }
  })
  t.equal((await (await k.as.token('write')).post('/api/maintenance/restart?service=able')).status, 403)
  const { body } = await admin.get('/api/maintenance/logs?service=able')
  t.equal(body.service, 'able')
  t.match(body.content, /the last one\n$/)
  t.equal(body.content.split('\n').length, 1001)
  t.same(lines, [1000])
})
