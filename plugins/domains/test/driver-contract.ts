import { randomUUID } from 'node:crypto'
import { Agent, createServer, type IncomingHttpHeaders, request } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TrafficTarget } from 'busbar/api/deployments'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import type { ApplicationTargets, ProxyDriver, ProxyRoute, RoutingTable } from '../api.js'

/** Makes a driver that serves plain HTTP on a port of 127.0.0.1, and ends it with the test. */
export type DriverMaker = (t: Test) => Promise<ProxyDriver>

/** A server that stands for a container: it says what it was asked for, and echoes over WebSocket. */
export async function startContainer(t: Test, name: string): Promise<TrafficTarget> {
  const sockets = new Set<Socket>()
  const server = createServer((incoming, response) => {
    incoming.resume()
    incoming.on('end', () => {
      response.setHeader('Set-Cookie', ['token=mine', 'own=1'])
      response.end(JSON.stringify({ name, url: incoming.url, headers: incoming.headers }))
    })
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const webSockets = new WebSocketServer({ server })
  webSockets.on('connection', socket => {
    socket.on('error', () => {})
    socket.on('message', message => socket.send(`${name}:${message.toString()}`))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return { deploymentId: randomUUID(), containerId: `c-${port}`, host: '127.0.0.1', port }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** What the container was asked, where it was one that answered. */
  readonly seen: { readonly name?: string; readonly url?: string; readonly headers?: IncomingHttpHeaders }
}

/**
 * One request to the proxy, by a hostname; on a connection of its own, as a proxy that loads a table may end those that are idle, at
 * which a browser would ask again.
 */
export async function visit(
  driver: ProxyDriver,
  hostname: string,
  path = '/',
  { headers = {}, agent }: { readonly headers?: Record<string, string>; readonly agent?: Agent } = {}
): Promise<Answer> {
  const port = driver.ports().http ?? 0
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path,
        agent: agent ?? false,
        headers: { Host: `${hostname}:${port}`, ...headers }
      },
      answer => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('error', reject)
        answer.on('end', () => {
          const seen = text.startsWith('{') ? JSON.parse(text) : {}
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, seen })
        })
      }
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

export const route = (
  fields: Partial<ProxyRoute> & Pick<ProxyRoute, 'hostname' | 'applicationId'>
): ProxyRoute => ({
  id: randomUUID(),
  path: '/',
  containerPort: null,
  stripPath: false,
  internalPath: '',
  forceHttps: false,
  tls: { mode: 'off' },
  features: [],
  handlers: [],
  ...fields
})
export const table = (...routes: ProxyRoute[]): RoutingTable => ({
  routes,
  certificates: [],
  platform: null,
  trustedProxies: []
})
export const only = (target: TrafficTarget): ApplicationTargets => new Map([[null, target]])

/** What every driver does over plain HTTP, whatever it is made of. */
export async function driverContract(t: Test, make: DriverMaker): Promise<void> {
  await t.test(
    'a hostname leads to its application, the longest path first, and wildcards come last',
    async t => {
      const driver = await make(t)
      const [a, b, c] = [
        await startContainer(t, 'a'),
        await startContainer(t, 'b'),
        await startContainer(t, 'c')
      ]
      for (const [id, target] of Object.entries({ a, b, c })) await driver.retarget(id, only(target))
      await driver.load(
        table(
          route({ hostname: 'www.example.com', path: '/shop/deep', applicationId: 'c', stripPath: true }),
          route({
            hostname: 'www.example.com',
            path: '/shop',
            applicationId: 'b',
            stripPath: true,
            internalPath: '/v2'
          }),
          route({ hostname: 'www.example.com', applicationId: 'a' }),
          route({ hostname: 'path.example.com', path: '/only', applicationId: 'a' }),
          route({ hostname: '*.example.com', applicationId: 'c' })
        )
      )
      const asked = async (hostname: string, path: string) => {
        const { seen } = await visit(driver, hostname, path)
        return `${seen.name} ${seen.url}`
      }
      t.equal(await asked('www.example.com', '/x?y=1'), 'a /x?y=1')
      t.equal(await asked('WWW.Example.com', '/shop/cart?y=1'), 'b /v2/cart?y=1')
      t.match((await visit(driver, 'x', '/', { headers: { Host: 'www.example.com.' } })).seen, { name: 'a' })
      t.equal(await asked('www.example.com', '/shop'), 'b /v2/')
      t.equal(await asked('www.example.com', '/shop?y=1'), 'b /v2/?y=1')
      t.equal(await asked('www.example.com', '/shopping'), 'a /shopping', 'a path is whole segments')
      t.equal(await asked('www.example.com', '/shop/deep/er'), 'c /er')
      t.equal(await asked('other.example.com', '/'), 'c /')
      t.equal((await visit(driver, 'a.b.example.com')).status, 404, 'a wildcard is for one label')
      t.equal((await visit(driver, 'path.example.com', '/other')).status, 404)
      for (const path of ['/shop/../admin', '/shop/%2e%2e/admin', '/shop/..%2fadmin'])
        t.not(
          (await visit(driver, 'www.example.com', path)).seen.name,
          'b',
          `${path} does not leave the path of a rule`
        )
    }
  )

  await t.test('a rule for a path is not passed by writing the path otherwise', async t => {
    const driver = await make(t)
    const [a, b] = [await startContainer(t, 'a'), await startContainer(t, 'b')]
    for (const [id, target] of Object.entries({ a, b })) await driver.retarget(id, only(target))
    await driver.load(
      table(
        route({ hostname: 'www.example.com', path: '/admin', applicationId: 'b', stripPath: true }),
        route({ hostname: 'www.example.com', applicationId: 'a' }),
        route({ hostname: 'whole.example.com', applicationId: 'a' })
      )
    )
    const asked = async (path: string, hostname = 'www.example.com') => {
      const { status, seen } = await visit(driver, hostname, path)
      return status === 200 ? `${seen.name} ${seen.url}` : status
    }
    for (const path of ['/%61dmin/x', '//admin/x', '/admi%6E/x', '///%61%64min/x'])
      t.equal(await asked(path), 'b /x', path)
    // Whether such a slash is stripped, too, is the proxy's choice.
    t.match(await asked('/%2Fadmin/x'), /^b /)
    t.equal(await asked('/admin/%78?%79=%7A'), 'b /%78?%79=%7A', 'what is behind it stays as it was written')
    t.equal(await asked('/Admin/x'), 'a /Admin/x', 'paths have a case')
    for (const path of ['/x/../admin', '/x/%2e%2e/admin', '/x/..%2Fadmin', '/x\\..\\admin', '/./admin'])
      t.equal(await asked(path), 400, `${path} comes by the rule for all other paths`)
    t.equal(await asked('/x/%2e%2e/y', 'whole.example.com'), 'a /x/%2e%2e/y', 'without rules for paths')
  })

  await t.test('an unknown host is a plain 404, a stopped application a plain 503', async t => {
    const driver = await make(t)
    await driver.load(table(route({ hostname: 'www.example.com', applicationId: 'a' })))
    for (const hostname of ['unknown.example.com', '127.0.0.1', 'localhost']) {
      const answer = await visit(driver, hostname)
      t.match(answer, { status: 404, headers: { 'content-type': /text\/plain/ } }, hostname)
      t.notMatch(answer.text, /<html/i)
    }
    t.match(await visit(driver, 'www.example.com'), { status: 503, text: /not running/ })
    await driver.retarget('a', only(await startContainer(t, 'a')))
    t.equal((await visit(driver, 'www.example.com')).seen.name, 'a')
    await driver.retarget('a', null)
    t.equal((await visit(driver, 'www.example.com')).status, 503)
  })

  await t.test('the cookies of the platform reach no application and come from none', async t => {
    const driver = await make(t)
    await driver.retarget('a', only(await startContainer(t, 'a')))
    await driver.load(table(route({ hostname: 'www.example.com', applicationId: 'a' })))
    const { seen, headers } = await visit(driver, 'www.example.com', '/', {
      headers: {
        Cookie: 'token=busbar_ses_abc; csrf_token=x; own=1; refresh_token=busbar_ref_abc',
        'X-Forwarded-For': '1.2.3.4'
      }
    })
    t.equal(seen.headers?.cookie, 'own=1')
    // Browsers ignore an empty one, which is all that some proxies can make of it.
    t.same(
      headers['set-cookie']?.filter(cookie => cookie !== ''),
      ['own=1']
    )
    t.match(seen.headers?.['x-forwarded-for'], /127\.0\.0\.1$/)
    t.match(seen.headers?.['x-forwarded-host'], /^www\.example\.com/)
  })

  await t.test(
    'a table takes the place of another between two requests, and ports of routes are their own',
    async t => {
      const driver = await make(t)
      const [a, b] = [await startContainer(t, 'a'), await startContainer(t, 'b')]
      await driver.retarget(
        'x',
        new Map([
          [null, a],
          [9000, b]
        ])
      )
      await driver.load(table(route({ hostname: 'one.example.com', applicationId: 'x' })))
      t.equal((await visit(driver, 'one.example.com')).seen.name, 'a')
      await driver.load(
        table(route({ hostname: 'two.example.com', applicationId: 'x', containerPort: 9000 }))
      )
      t.equal((await visit(driver, 'two.example.com')).seen.name, 'b')
      t.equal((await visit(driver, 'one.example.com')).status, 404)
      t.match(await driver.report('two.example.com'), { fault: null })
    }
  )

  await t.test('switches under load fail no request and leave WebSockets where they are', async t => {
    const driver = await make(t)
    const versions = [await startContainer(t, 'a'), await startContainer(t, 'b')] as const
    await driver.retarget('x', only(versions[0]))
    await driver.load(table(route({ hostname: 'www.example.com', applicationId: 'x' })))
    const agent = new Agent({ keepAlive: true })
    t.teardown(() => agent.destroy())
    const socket = new WebSocket(`ws://127.0.0.1:${driver.ports().http}/`, {
      headers: { Host: 'www.example.com' }
    })
    const heard: string[] = []
    socket.on('message', message => heard.push(message.toString()))
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    let isOver = false
    let answered = 0
    const failures: string[] = []
    const clients = Array.from({ length: 8 }, async () => {
      while (!isOver)
        await visit(driver, 'www.example.com', '/', { agent }).then(
          ({ status, seen }) => {
            if (status === 200 && ['a', 'b'].includes(seen.name ?? '')) answered += 1
            else failures.push(String(status))
          },
          (error: Error) => failures.push(error.message)
        )
    })
    for (let round = 1; round <= 10; round += 1) {
      const before = answered
      await until(async () => answered > before + 10, 'some requests between two switches')
      const next = versions[round % 2 === 0 ? 0 : 1]
      const switched = await driver.switchTo('x', only(next))
      t.equal((await visit(driver, 'www.example.com')).seen.name, round % 2 === 0 ? 'a' : 'b')
      // The socket stays open on the first version.
      const proof = await switched?.drain(50)
      t.match(proof ?? { failed: 0 }, { failed: 0 })
    }
    isOver = true
    await Promise.all(clients)
    t.same(failures, [])
    socket.send('still here')
    await until(async () => heard.length > 0, 'the echo')
    t.same(heard, ['a:still here'])
    socket.terminate()
  })

  await t.test('what it cannot do is not served without, and the report says so', async t => {
    const driver = await make(t)
    if (driver.abilities.includes('basic_auth')) return
    await driver.retarget('x', only(await startContainer(t, 'a')))
    const features = [{ type: 'basic_auth', username: 'ann', hashedPassword: 'x' }] as const
    await driver.load(table(route({ hostname: 'www.example.com', applicationId: 'x', features })))
    t.equal((await visit(driver, 'www.example.com')).status, 503)
    t.match(await driver.report('www.example.com'), { fault: /basic_auth/ })
  })

  await t.test('redirects, allowed addresses and headers are applied', async t => {
    const driver = await make(t)
    if (!['redirect', 'ip_allowlist', 'headers'].every(one => driver.abilities.includes(one as never))) return
    await driver.retarget('x', only(await startContainer(t, 'a')))
    await driver.load(
      table(
        route({
          hostname: 'www.example.com',
          applicationId: 'x',
          features: [
            { type: 'redirect', from: '/old', to: '/new', statusCode: 308 },
            {
              type: 'headers',
              request: { set: { 'X-Team': ['a'] }, delete: ['x-gone'] },
              response: { add: { 'X-More': ['1', '2'] }, delete: ['Set-Cookie'] }
            }
          ]
        }),
        route({
          hostname: 'closed.example.com',
          applicationId: 'x',
          features: [{ type: 'ip_allowlist', ranges: ['10.0.0.0/8', '::1'] }]
        }),
        route({
          hostname: 'open.example.com',
          applicationId: 'x',
          features: [{ type: 'ip_allowlist', ranges: ['127.0.0.0/8'] }]
        })
      )
    )
    t.match(await visit(driver, 'www.example.com', '/old?x=1'), {
      status: 308,
      headers: { location: '/new' }
    })
    const { seen, headers } = await visit(driver, 'www.example.com', '/', {
      headers: { 'X-Gone': '1', 'X-Team': 'b' }
    })
    t.equal(seen.headers?.['x-team'], 'a')
    t.equal(seen.headers?.['x-gone'], undefined)
    t.match(headers, { 'x-more': '1, 2' })
    t.equal(headers['set-cookie'], undefined)
    t.match(await visit(driver, 'closed.example.com'), { status: 403, text: /Forbidden/ })
    t.equal((await visit(driver, 'open.example.com')).status, 200)
  })
}
