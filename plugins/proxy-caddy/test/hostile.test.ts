import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { RouteFeature } from 'busbar/api/domains'
import { test } from 'tap'
import { route, table } from '../../domains/test/driver-contract.js'
import { caddyLab, ownProxy, startContainer, type Visited, visit } from './caddy-lab.js'

type Seen = {
  readonly name: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly raw: string[]
}
const seen = ({ text }: Visited): Seen => JSON.parse(text) as Seen

/** What a server says to bytes as they are; the first line and all of it. */
async function said(port: number, bytes: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setTimeout(5000, () => socket.destroy(new Error('no answer within 5 s')))
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      if (/\r\n\r\n/.test(text)) socket.destroy()
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

test('requests that lie are made honest, and answers too', async t => {
  const { driver, http } = await caddyLab(t)
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  await driver.retarget('b', new Map([[null, await startContainer(t, 'b')]]))
  const headers = (set: Record<string, string[]>): RouteFeature => ({ type: 'headers', response: { set } })
  await driver.load(
    table(
      route({ hostname: 'www.example.com', path: '/Shop', applicationId: 'b', stripPath: true }),
      route({ hostname: 'www.example.com', applicationId: 'a' }),
      route({
        hostname: 'brace.example.com',
        applicationId: 'a',
        features: [
          headers({ 'X-A': ['{env.HOME} {http.request.uuid} }{ \\{x}'] }),
          { type: 'redirect', from: '/old.html', to: '/{env.HOME}', statusCode: 302 }
        ]
      })
    )
  )
  await t.test('headers that a client has no right to', async t => {
    const { headers: given, raw } = seen(
      await visit(http, {
        hostname: 'www.example.com',
        headers: {
          'X-Forwarded-For': '1.2.3.4',
          'X-Forwarded-Proto': 'https',
          'X-Forwarded-Host': 'evil.example.com',
          X_Forwarded_For: '1.2.3.4',
          Forwarded: 'for=1.2.3.4',
          'X-Real-Ip': '1.2.3.4',
          Proxy: 'http://evil.example.com',
          'X-Request-Id': 'mine',
          'Proxy-Authorization': 'x',
          TE: 'trailers, deflate',
          Connection: 'close, X-Hop',
          'X-Hop': '1',
          'X-Stays': '1'
        }
      })
    )
    t.match(given, {
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'www.example.com',
      'x-request-id': /^[0-9a-f-]{36}$/,
      'x-stays': '1'
    })
    for (const name of ['forwarded', 'x-real-ip', 'proxy', 'x-hop', 'x_forwarded_for', 'proxy-authorization'])
      t.notOk(name in given, name)
    t.notMatch(raw.join('\n'), /1\.2\.3\.4|evil/)
  })

  await t.test("the platform's cookies, however they are written", async t => {
    const cookie = async (value: string): Promise<string | undefined> =>
      seen(await visit(http, { hostname: 'www.example.com', headers: { Cookie: value } })).headers.cookie
    t.equal(await cookie('a=1; b=2'), 'a=1; b=2')
    for (const value of [
      'x=busbar_ses_1',
      'x=%62usbar_ses_1',
      'x="busbar_ref_1',
      'x= busbar%5Fdev%5f1',
      'x=%62%75%73%62%61%72%5f%73%65%73%5F1',
      '=busbar_ses_1',
      'csrf_token=1',
      ' csrf_token =1'
    ]) {
      t.equal(await cookie(`a=1; ${value}; b=2`), 'a=1; b=2', value)
      t.notOk(await cookie(value), `nothing is left of ${value}`)
    }
    t.equal(await cookie('token=mine; x=busbar; y=ebusbar_ses_'), 'token=mine; x=busbar; y=ebusbar_ses_')
  })

  await t.test('paths', async t => {
    const name = async (path: string): Promise<unknown> => {
      const answer = await visit(http, { hostname: 'www.example.com', path })
      return answer.status === 200 ? `${seen(answer).name} ${seen(answer).url}` : answer.status
    }
    t.equal(await name('/Shop/x%2Fy?a=%20b'), 'b /x%2Fy?a=%20b', 'nothing is decoded on the way')
    t.equal(await name('/shop/x'), 'a /shop/x', 'in their own case')
    t.equal(await name('/%53hop/x'), 'b /x', 'a rule cannot be passed by encoding')
    t.equal(await name('//Shop/x'), 'b /x')
    for (const path of [
      '/Shop/../x',
      '/x/..%2fShop',
      '/Shop/%2e%2E/x',
      '/Shop/..',
      '/Shop/.%2e\\x',
      '/Shop/./x'
    ])
      t.equal(await name(path), 400, path)
    t.equal(await name('/{env.HOME}?{env.PATH}'), 'a /%7Benv.HOME%7D?{env.PATH}')
    t.equal(await name('/Shop/{env.HOME}'), 'b /%7Benv.HOME%7D', 'a visitor reads no variable of the proxy')
  })

  await t.test('braces in what tenants write', async t => {
    const answer = await visit(http, { hostname: 'brace.example.com' })
    t.equal(answer.headers['x-a'], '{env.HOME} {http.request.uuid} }{ \\{x}')
    t.match(await visit(http, { hostname: 'brace.example.com', path: '/old.html' }), {
      status: 302,
      headers: { location: '/{env.HOME}' },
      text: 'Moved to /{env.HOME}\n'
    })
    t.equal((await visit(http, { hostname: 'brace.example.com', path: '/oldxhtml' })).status, 200)
  })

  await t.test('hosts, and what is no HTTP', async t => {
    for (const host of ['www.example.com:1', 'WWW.EXAMPLE.COM.', 'www.example.com.:80'])
      t.equal((await visit(http, { hostname: host })).status, 200, host)
    for (const host of [
      '',
      '[::1]',
      '..',
      'www.example.com@evil',
      'xwww.example.com',
      '*.example.com',
      'a..example.com'
    ])
      t.match(
        await said(http, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
        /^HTTP\/1\.1 4\d\d /,
        host
      )
    for (const bytes of [
      'GET / HTTP/1.1\r\nHost: www.example.com\r\nHost: evil\r\n\r\n',
      'POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
      'POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: www.example.com\r\nX : y\r\n\r\n',
      `GET / HTTP/1.1\r\nHost: www.example.com\r\nX: ${'a'.repeat(100_000)}\r\n\r\n`,
      'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n',
      'GET http://127.0.0.1:2019/config/ HTTP/1.1\r\nHost: 127.0.0.1:2019\r\n\r\n'
    ])
      t.match(await said(http, bytes), /^HTTP\/1\.1 [45]\d\d /, JSON.stringify(bytes.slice(0, 70)))
    t.equal((await visit(http, { hostname: 'www.example.com' })).status, 200, 'and it goes on')
  })
})

test('an application sets no cookie of the platform, by a change of protocols neither', async t => {
  const { driver, http } = await caddyLab(t)
  const cookies = ['token=x', ' =token=x', 'csrf_token', 'known_device = x; Path=/', 'tokens=1', 'a=token']
  const server = createServer((_request, answer) => {
    answer.setHeader('Set-Cookie', cookies)
    answer.end()
  })
  server.on('upgrade', (request, socket) => {
    const cookie = String(request.headers['x-cookie'])
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\nSet-Cookie: ${cookie}\r\n\r\nhello`
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  await driver.retarget(
    'a',
    new Map([[null, { deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port }]])
  )
  await driver.load(table(route({ hostname: 'www.example.com', applicationId: 'a' })))
  const answer = await visit(http, { hostname: 'www.example.com' })
  t.same(
    answer.headers['set-cookie']?.filter(cookie => cookie !== ''),
    ['tokens=1', 'a=token']
  )
  const upgrade = async (cookie: string): Promise<string> =>
    await said(
      http,
      `GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Cookie: ${cookie}\r\n\r\n`
    )
  t.match(await upgrade('own=1'), /^HTTP\/1\.1 101 /)
  for (const cookie of ['token=x', ' refresh_token =x', 'known_device=x']) {
    const text = await upgrade(cookie)
    t.match(text, /^HTTP\/1\.1 502 /, cookie)
    t.notMatch(text, /set-cookie/i)
  }
})

test("behind trusted proxies the address that counts is the client's, and nobody can claim another", async t => {
  const { driver, http } = await caddyLab(t)
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  const inside: RouteFeature = { type: 'ip_allowlist', ranges: ['203.0.113.0/24', '2001:db8::/32'] }
  const closed = route({ hostname: 'www.example.com', applicationId: 'a', features: [inside] })
  const status = async (...forwarded: string[]): Promise<number> =>
    (
      await visit(http, {
        hostname: 'www.example.com',
        headers: forwarded.length === 0 ? {} : { 'X-Forwarded-For': forwarded }
      })
    ).status
  await driver.load(table(closed))
  t.equal(await status('203.0.113.9'), 403, 'whoever is no trusted proxy is not believed')
  await driver.load({ ...table(closed), trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] })
  for (const [expected, ...forwarded] of [
    [403],
    [200, '203.0.113.9'],
    [200, '2001:db8::1'],
    [200, '203.0.113.9:4711'],
    [403, '198.51.100.1'],
    [403, '203.0.113.9, 198.51.100.1'],
    [403, '203.0.113.9', '198.51.100.1'],
    [200, '198.51.100.1, 203.0.113.9'],
    [200, '203.0.113.9, 10.0.0.1'],
    [200, '203.0.113.9', '10.0.0.1, 10.0.0.2'],
    [403, '198.51.100.1, 10.0.0.1, 10.0.0.2'],
    [200, '203.0.113.9, 10.0.0.1, 10.0.0.2, 10.0.0.3', '10.0.0.4'],
    [403, '198.51.100.1, 10.0.0.1, 10.0.0.2, 10.0.0.3', '10.0.0.4'],
    [403, '10.0.0.1'],
    [403, 'nonsense'],
    [403, '203.0.113.9, '],
    [403, '203.0.113.9, {env.X}']
  ] as const)
    t.equal(await status(...forwarded), expected, JSON.stringify(forwarded))
  const { headers } = seen(
    await visit(http, { hostname: 'www.example.com', headers: { 'X-Forwarded-For': '1.1.1.1, 203.0.113.9' } })
  )
  t.equal(headers['x-forwarded-for'], '1.1.1.1, 203.0.113.9, 127.0.0.1', 'the chain is whole again')
  t.notMatch(JSON.stringify(headers), /x-busbar/)

  const secure = route({
    hostname: 'secure.example.com',
    applicationId: 'a',
    tls: { mode: 'automatic' },
    forceHttps: true
  })
  await driver.load({ ...table(secure), trustedProxies: ['127.0.0.0/8'] })
  const asked = async (headers: Record<string, string>): Promise<number> =>
    (await visit(http, { hostname: 'secure.example.com', headers })).status
  t.equal(await asked({}), 301)
  t.equal(await asked({ 'X-Forwarded-Proto': 'https' }), 200, 'it was over TLS up to the proxy in front')
  await driver.load(table(secure))
  t.equal(await asked({ 'X-Forwarded-Proto': 'https' }), 301, 'which only such a proxy can say')
})

test('a password is asked for, and the platform knows its own proxy', async t => {
  const { driver, http } = await caddyLab(t)
  await driver.retarget('a', new Map([[null, await startContainer(t, 'a')]]))
  const platform = await startContainer(t, 'platform')
  await driver.load({
    ...table(
      route({
        hostname: 'www.example.com',
        applicationId: 'a',
        features: [
          {
            type: 'basic_auth',
            username: 'ann',
            // "secret", by bcrypt
            hashedPassword: '$2a$04$AoE7UXQ3JhYKdZR5a8rVqulRPhdb6S6BFm6qZ2qHeJmn5yQJlnJ7e'
          }
        ]
      })
    ),
    platform: {
      hostname: 'panel.example.com',
      forceHttps: false,
      tls: { mode: 'off' },
      upstream: { host: platform.host, port: platform.port }
    }
  })
  t.match(await visit(http, { hostname: 'www.example.com' }), {
    status: 401,
    headers: { 'www-authenticate': /Basic/ },
    text: /name and a password/
  })
  const wrong = `Basic ${Buffer.from('ann:wrong').toString('base64')}`
  t.equal((await visit(http, { hostname: 'www.example.com', headers: { Authorization: wrong } })).status, 401)

  const asked = seen(
    await visit(http, {
      hostname: 'panel.example.com',
      headers: { Cookie: 'token=busbar_ses_1', 'X-Forwarded-For': '1.2.3.4', [ownProxy.header]: 'forged' }
    })
  )
  t.match(asked, {
    name: 'platform',
    headers: {
      cookie: 'token=busbar_ses_1',
      [ownProxy.header]: ownProxy.value,
      'x-forwarded-for': '127.0.0.1',
      'x-request-id': /^[0-9a-f-]{36}$/
    }
  })
  const application = seen(await visit(http, { hostname: 'panel.example.com' }))
  t.equal(application.name, 'platform')
})
