import { request } from 'node:http'
import { type TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { freeTcpPorts } from '../../../lab/pebble.js'
import { openLab, sample } from '../../deployments/test/deploy-lab.js'

interface Answer {
  readonly status: number
  readonly text: string
}

/** One request by a hostname, as a browser makes it; undefined where nobody listens. */
async function visit(
  port: number,
  hostname: string,
  method = 'GET',
  path = '/'
): Promise<Answer | undefined> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, method, path, agent: false, headers: { Host: `${hostname}:${port}` } },
      answer => {
        let text = ''
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('error', reject)
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      }
    )
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNREFUSED' ? resolve(undefined) : reject(error)
    )
    outgoing.end(method === 'POST' ? 'x'.repeat(20_000) : undefined)
  })
}

test('Caddy serves deploys without a failed request, and takes over from the built-in proxy and gives way', async t => {
  if (!(await requireEngine(t))) return
  const [http = 0, https = 0, forwarder = 0] = await freeTcpPorts(3)
  const lab = await openLab({
    environment: {
      BUSBAR_CADDY_PROGRAM: 'caddy',
      BUSBAR_CADDY_BIND: '127.0.0.1',
      BUSBAR_HTTP_PORT: String(http),
      BUSBAR_HTTPS_PORT: String(https),
      BUSBAR_PROXY_PORT: String(forwarder)
    }
  })
  t.teardown(() => lab.close())
  const client = async (): Promise<TestClient> => await lab.k.as.session()
  const web = await lab.application('web', sample('v0'))
  const urls = async (): Promise<string[]> =>
    ((await (await client()).get(`${web.path}/addresses`)).body as Array<{ url: string }>).map(
      ({ url }) => url
    )
  t.match(await web.deployed(), { status: 'success' })
  const added = await (await client()).post(`${web.path}/domains`, {
    hostname: 'shop.example.com',
    ssl_mode: 'off'
  })
  t.equal(added.status, 201)
  const [own = '', domain = ''] = await urls()
  t.equal(new URL(own).port, String(http), 'names are told with the port of Caddy')
  t.match(domain, /^http:\/\/shop\.example\.com:/)
  const name = new URL(own).hostname
  t.same(await visit(http, name), { status: 200, text: 'v0' })
  t.same(await visit(http, 'shop.example.com'), { status: 200, text: 'v0' }, 'served when it was answered')

  t.match(await visit(http, 'shop.example.com', 'GET', '/traced?token=letmein'), { status: 200 })
  const trace = await until(async () => {
    const { body } = await (await client()).get(`${web.path}/requests?limit=50`)
    return (body as ReadonlyArray<{ path: string }>).find(({ path }) => path.startsWith('/traced'))
  }, 'the trace of a request through Caddy')
  t.match(trace, {
    application_id: web.id,
    hostname: 'shop.example.com',
    method: 'GET',
    status_code: 200,
    client_ip: '127.0.0.1'
  })
  t.notMatch(trace.path, /letmein/)

  const bad = await (await client()).post(`${web.path}/domains`, {
    hostname: 'bad.example.com',
    ssl_mode: 'off',
    advanced_config: [{ handler: 'headers', response: { set: { 'X-A': ['{env.HOME}'] } } }]
  })
  t.equal(bad.status, 400)
  t.match(bad.body, { code: 'E_DOMAIN_ADVANCED_CONFIG', error: /placeholder/ })

  let isOver = false
  let served = 0
  const failures: string[] = []
  /** By whichever of the two is in charge. What waits on a port that is being closed is reset. */
  const isServed = async (hostname: string, method: string): Promise<boolean> =>
    (
      await Promise.all([http, forwarder].map(port => visit(port, hostname, method).catch(() => undefined)))
    ).some(answer => answer?.status === 200 && /^v\d$/.test(answer.text))
  const visitors = Array.from({ length: 4 }, async (_, index) => {
    const [hostname, method] = [
      index % 2 === 0 ? name : 'shop.example.com',
      index < 2 ? 'GET' : 'POST'
    ] as const
    while (!isOver) {
      // The first may have asked each of them at the moment at which the other one took over.
      if ((await isServed(hostname, method)) || (await isServed(hostname, method))) served += 1
      else failures.push(`${method} ${hostname}`)
    }
  })
  await web.push(sample('v1'))
  t.equal((await web.deployed()).status, 'success')
  t.same(await visit(http, name), { status: 200, text: 'v1' })
  const proof = await until(async () => {
    const [newest] = (await (await client()).get(`${web.path}/deployments?limit=1`)).body
    return newest.switch_served === null ? undefined : newest
  }, 'what the switch did')
  t.match(proof, { switch_failed: 0, switch_served: Number, switch_cut: 0 })

  const operator = await client()
  t.equal((await operator.post('/api/plugins/proxy-caddy/disable')).status, 200)
  await until(async () => (await visit(forwarder, name))?.status === 200, 'that the built-in proxy serves')
  t.equal(await visit(http, name), undefined, 'Caddy has left its port')
  t.equal(new URL((await urls())[0] ?? '').port, String(forwarder))
  t.equal((await operator.post('/api/plugins/proxy-caddy/enable')).status, 200)
  await until(async () => (await visit(http, name))?.status === 200, 'that Caddy serves again')
  await until(
    async () => (await visit(forwarder, name)) === undefined,
    'that the built-in proxy has left its port'
  )
  isOver = true
  await Promise.all(visitors)
  t.same(failures, [], 'one of the two has always served')
  t.ok(served > 100, `${served} requests served`)

  t.equal((await operator.post(`${web.path}/stop`)).status, 200)
  t.match(await visit(http, name), { status: 503, text: /not running/ })
  t.equal((await operator.post(`${web.path}/start`)).status, 200)
  await until(async () => (await visit(http, name))?.text === 'v1', 'that it answers again')
})
