import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { endlessInterimServer, interimServer, unaskedUpgrade } from '../../../lab/interim-answers.js'
import { describeImage } from '../registry/client/index.js'
import { RegistryFailure, registryProblem } from '../registry/client/registry-failure.js'
import { indexType, manifestType } from './hand-made-registry.js'
import { selfSigned, trustEverybody } from './kit.js'
import { failureOf, readerOf } from './registry-client-lab.js'

const pem = selfSigned()
const isRegistry = { 'docker-distribution-api-version': 'registry/2.0' }
const html = { 'content-type': 'text/html' }
const account = { username: 'deployer', password: 's3cret' }
const code = (name: string) => JSON.stringify({ errors: [{ code: name, message: name }] })

type Options = Parameters<typeof readerOf>[2]
const pull = async (t: Test, name: string, options: Options = {}) =>
  await failureOf(describeImage(readerOf(t, name, options), name, 'linux/amd64'))

async function listen(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
const serve = async (t: Test, answer: RequestListener) => `127.0.0.1:${await listen(t, createServer(answer))}`
const serveTls = async (t: Test, answer: RequestListener) =>
  await listen(t, createTlsServer({ key: pem, cert: pem }, answer) as unknown as Server)

const says =
  (status: number, body: string, headers: Record<string, string> = isRegistry): RequestListener =>
  (_request, response) => {
    response.writeHead(status, headers).end(body)
  }

/** With a token service, which answers in its own way. */
const asksForToken =
  (realm: string): RequestListener =>
  (request, response) => {
    const isKnown = request.headers.authorization === 'Bearer known'
    if (isKnown) response.writeHead(401).end(code('UNAUTHORIZED'))
    else response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="x"` }).end()
  }

test('what answers badly is told apart: no registry, a failing one, a broken image, another machine', async t => {
  const list = JSON.stringify({
    schemaVersion: 2,
    manifests: [
      {
        mediaType: manifestType,
        size: 7,
        digest: `sha256:${'1'.repeat(64)}`,
        platform: { architecture: 's390x', os: 'linux' }
      }
    ]
  })
  const cases: ReadonlyArray<
    readonly [what: string, answer: RequestListener, code: string, message: RegExp, options?: Options]
  > = [
    [
      'a web page',
      says(200, '<html>', html),
      'E_REGISTRY_ANSWER',
      /no image registry.*check the host and port in 127/
    ],
    ['a web page that says not found', says(404, '<html>no', html), 'E_REGISTRY_ANSWER', /404 Not Found/],
    [
      'a page that sends everybody to itself',
      says(302, '', { location: '/login' }),
      'E_REGISTRY_ANSWER',
      /redirects more than 5/
    ],
    ['a redirect to nowhere', says(302, '', { location: 'http://[' }), 'E_REGISTRY_ANSWER', /no address/],
    [
      'a redirect to another protocol',
      says(302, '', { location: 'ftp://x/' }),
      'E_REGISTRY_ANSWER',
      /unencrypted/
    ],
    [
      'an endless answer',
      (_request, response) => endless(response),
      'E_REGISTRY_ANSWER',
      /more than \d+ bytes/
    ],
    [
      'half a manifest',
      says(200, '{"schemaVersion":2,', { 'content-type': manifestType }),
      'E_IMAGE_BROKEN',
      /push the image again/
    ],
    [
      'an outdated one',
      says(200, '{"schemaVersion":1}'),
      'E_IMAGE_FORMAT',
      /schema version 1.*build and push it anew/
    ],
    [
      'a list without this machine',
      says(200, list, { 'content-type': indexType }),
      'E_IMAGE_PLATFORM',
      /no matching manifest for linux\/amd64.*push it for that one too/
    ],
    [
      'an unknown repository',
      says(404, code('NAME_UNKNOWN')),
      'E_IMAGE_NOT_FOUND',
      /there is no repository 127.*\/team\/app/
    ],
    [
      'an unknown tag',
      says(404, code('MANIFEST_UNKNOWN')),
      'E_IMAGE_NOT_FOUND',
      /it has no tag 1 of .*or no such repository/
    ],
    ['not found without a word', says(404, '', {}), 'E_IMAGE_NOT_FOUND', /no tag 1/],
    [
      'an error of its own',
      says(500, 'boom'),
      'E_REGISTRY_FAILING',
      /500 Internal Server Error; try again later/
    ],
    ['an error of what stands before it', says(503, 'busy'), 'E_REGISTRY_FAILING', /503/],
    ['a limit', says(429, code('TOOMANYREQUESTS')), 'E_REGISTRY_LIMIT', /limits how often/],
    ['a limit in words', says(403, code('TOOMANYREQUESTS')), 'E_REGISTRY_LIMIT', /limits how often/],
    ['a refusal of everybody', says(403, code('DENIED')), 'E_REGISTRY_DENIED', /set registry_username/],
    [
      'a refusal of a build',
      says(403, code('DENIED')),
      'E_REGISTRY_DENIED',
      /base image .*neither the project nor the installation has an account/,
      { isBase: true }
    ],
    [
      'a refusal of an account',
      says(403, code('DENIED')),
      'E_REGISTRY_DENIED',
      /to the account deployer: allow it/,
      { auth: account }
    ],
    [
      'an account that is asked for',
      says(401, '', { 'www-authenticate': 'Basic realm="lab"' }),
      'E_REGISTRY_DENIED',
      /set registry_username/
    ],
    [
      'an account that is not known',
      says(401, '', { 'www-authenticate': 'Basic realm="lab"' }),
      'E_REGISTRY_CREDENTIALS',
      /refused the user name deployer and its password/,
      { auth: account }
    ],
    ['a refusal without a challenge', says(401, ''), 'E_REGISTRY_CREDENTIALS', /deployer/, { auth: account }],
    [
      'a hung-up connection',
      request => void request.socket.destroy(),
      'E_REGISTRY_UNREACHABLE',
      /could not be reached.*socket hang up/
    ],
    [
      'a token service that is away',
      asksForToken('http://127.0.0.1:1/token'),
      'E_REGISTRY_UNREACHABLE',
      /127\.0\.0\.1:1/,
      { hosts: 'allow' }
    ],
    [
      'no token service',
      says(401, '', { 'www-authenticate': 'Bearer service="x"' }),
      'E_REGISTRY_ANSWER',
      /names no token service/
    ]
  ]
  for (const [what, answer, expected, message, options] of cases)
    t.match(await pull(t, `${await serve(t, answer)}/team/app:1`, options), { code: expected, message }, what)
  const gone = `sha256:${'0'.repeat(64)}`
  t.match(await pull(t, `${await serve(t, says(404, code('MANIFEST_UNKNOWN')))}/team/app@${gone}`), {
    code: 'E_IMAGE_NOT_FOUND',
    message: new RegExp(`no version ${gone}`)
  })
})

function endless(response: Parameters<RequestListener>[1]): void {
  const more = (): void => {
    while (!response.destroyed && response.write(' '.repeat(65_536)));
  }
  response.on('drain', more)
  more()
}

test('a token service that refuses speaks of the account, and one that fails of itself', async t => {
  const ask = async (answer: RequestListener, options: Options = {}) => {
    const service = await serve(t, answer)
    return await pull(t, `${await serve(t, asksForToken(`http://${service}/token`))}/app:1`, options)
  }
  t.match(await ask(says(401, '')), { code: 'E_REGISTRY_DENIED', message: /set registry_username/ })
  t.match(await ask(says(401, ''), { auth: account }), { code: 'E_REGISTRY_CREDENTIALS' })
  t.match(await ask(says(403, ''), { auth: account }), { code: 'E_REGISTRY_DENIED', message: /deployer/ })
  t.match(await ask(says(200, '{"token":"known"}'), { auth: account }), {
    code: 'E_REGISTRY_DENIED',
    message: /to the account deployer/
  })
  t.match(await ask(says(502, '')), { code: 'E_REGISTRY_FAILING', message: /its token service answers 502/ })
  for (const body of ['{}', '<html>', '{"token":"a b"}', '{"token":5}', 'null'])
    t.match(await ask(says(200, body)), { code: 'E_REGISTRY_ANSWER', message: /no token/ }, body)
})

test('a registry that cannot be reached or trusted is told by its own remedy', async t => {
  t.match(await pull(t, '127.0.0.1:1/app:1'), { code: 'E_REGISTRY_UNREACHABLE', message: /ECONNREFUSED/ })
  t.match(await pull(t, 'gone.invalid/app:1'), { code: 'E_REGISTRY_UNKNOWN', message: /no such host/ })
  t.match(await pull(t, `world.example:${await serveTls(t, says(200, '{}'))}/app:1`), {
    code: 'E_REGISTRY_TLS',
    message: /self-signed certificate.*NODE_EXTRA_CA_CERTS/
  })
  t.match(await pull(t, `world.example:${await listen(t, createServer(says(200, '{}')))}/app:1`), {
    code: 'E_REGISTRY_PLAIN_HTTP'
  })
  const banner = createRawServer(socket => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
  t.match(await pull(t, `127.0.0.1:${await listen(t, banner)}/app:1`), {
    code: 'E_REGISTRY_ANSWER',
    message: /does not speak HTTP/
  })
  t.match(await pull(t, `127.0.0.1:${await endlessInterimServer(t)}/app:1`), {
    code: 'E_REGISTRY_ANSWER',
    message: /interim answers \(1xx\) one after another and no final one/
  })
  t.match(await pull(t, `127.0.0.1:${await interimServer(t, 0, unaskedUpgrade)}/app:1`), {
    code: 'E_REGISTRY_ANSWER',
    message: /another protocol that was not requested/
  })
  const mute = `127.0.0.1:${await listen(t, createRawServer())}/app:1`
  t.match(await pull(t, mute, { pace: { seconds: 1, bytesPerSecond: 1000 } }), {
    code: 'E_REGISTRY_UNREACHABLE',
    message: /did not answer in time.*whether a firewall is in between/
  })
})

test('where private hosts are denied nobody is connected to, and the words are the same whatever listens there', async t => {
  let connections = 0
  const count = (server: Server): Server => server.on('connection', () => connections++)
  const ports = [
    1,
    await listen(t, count(createRawServer())),
    await listen(t, count(createServer(says(404, 'no registry')))),
    await listen(t, count(createTlsServer({ key: pem, cert: pem }) as unknown as Server))
  ]
  const words = new Set<string>()
  for (const port of ports)
    for (const host of ['127.0.0.1', 'localhost', 'world.example']) {
      const error = await pull(t, `${host}:${port}/team/app:1`, { hosts: 'deny' })
      t.match(error, {
        code: 'E_SOURCE_HOST_PRIVATE',
        message: /the registry .* has the private or local address .*GIT_PRIVATE_HOSTS/
      })
      words.add(error.message.replaceAll(host, 'it').replaceAll('127.0.0.1', 'it'))
    }
  t.equal(words.size, 1, [...words].join('\n'))
  t.equal(connections, 0)
  t.match(
    await pull(t, 'metadata.example/app', {
      hosts: 'allow',
      addresses: { 'metadata.example': '169.254.169.254' }
    }),
    {
      code: 'E_SOURCE_HOST_METADATA'
    }
  )
})

test('the token service and the redirects of a registry are under the same rules', async t => {
  trustEverybody(t)
  const addresses = { 'ten.example': '10.0.0.1', 'metadata.example': '169.254.169.254' }
  const at = async (headers: Record<string, string>) => {
    const port = await serveTls(t, (_request, response) => {
      response.writeHead(headers.location === undefined ? 401 : 307, headers).end()
    })
    return await pull(t, `world.example:${port}/app`, { addresses })
  }
  for (const realm of ['https://ten.example:8500/v1/kv', 'https://10.0.0.7/'])
    t.match(await at({ 'www-authenticate': `Bearer realm="${realm}"` }), {
      code: 'E_SOURCE_HOST_PRIVATE',
      message: /the token service of a registry .* has the private/
    })
  t.match(await at({ 'www-authenticate': 'Bearer realm="https://metadata.example/latest/"' }), {
    code: 'E_SOURCE_HOST_METADATA'
  })
  t.match(await at({ 'www-authenticate': 'Bearer realm="http://world.example/"' }), {
    code: 'E_REGISTRY_ANSWER'
  })
  t.match(await at({ location: 'https://ten.example/v2/' }), { code: 'E_SOURCE_HOST_PRIVATE' })
  t.match(await at({ location: 'http://world.example/' }), { message: /unencrypted connection/ })
})

test('what a strange registry leads to is not told apart, unless the operator vouches for the registry', async t => {
  trustEverybody(t)
  const ports = {
    closed: 1,
    silent: await listen(t, createRawServer()),
    banner: await listen(
      t,
      createRawServer(socket => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
    ),
    hungUp: await listen(
      t,
      createRawServer(socket => void socket.destroy())
    ),
    plain: await listen(t, createServer(says(200, '{}'))),
    page: await serveTls(t, says(200, '<html>', html)),
    missing: await serveTls(t, says(404, code('MANIFEST_UNKNOWN'))),
    failing: await serveTls(t, says(500, '')),
    outdated: await serveTls(t, says(200, '{"schemaVersion":1}'))
  }
  const pace = { seconds: 1, bytesPerSecond: 1000 }
  for (const leads of ['by a redirect', 'by a token service'] as const) {
    const words = new Set<string>()
    const told = new Set<string>()
    const logged: string[] = []
    for (const [what, port] of Object.entries(ports)) {
      const target = `https://other.example:${port}/x`
      const own = await serveTls(
        t,
        leads === 'by a redirect' ? says(307, '', { location: target }) : asksForToken(target)
      )
      const hidden = await pull(t, `world.example:${own}/app:1`, { pace, logged })
      t.match(
        hidden,
        { code: 'E_REGISTRY_FAILING', message: /although its registry .* answers.*GIT_PRIVATE_HOSTS/ },
        what
      )
      words.add(hidden.message.replaceAll(String(own), 'port'))
      const listed = { pace, hosts: '127.0.0.1 world.example' }
      told.add((await pull(t, `world.example:${own}/app:1`, listed)).message.replace(/\d{4,}/g, ''))
    }
    t.equal(words.size, 1, `${leads}: ${[...words].join('\n')}`)
    t.ok(told.size > 5, `${leads}: ${[...told].join('\n')}`)
    t.equal(logged.length, Object.keys(ports).length, 'the log of the platform says why')
    t.match(logged.join(), /ECONNREFUSED/)
  }
})

test('what the registry itself answers behind a token service of another host is told', async t => {
  trustEverybody(t)
  const service = await serveTls(t, says(200, '{"token":"x"}'))
  const own = await serveTls(t, (request, response) => {
    if (request.headers.authorization === undefined)
      response
        .writeHead(401, { 'www-authenticate': `Bearer realm="https://other.example:${service}/"` })
        .end()
    else response.writeHead(503).end()
  })
  t.match(await pull(t, `world.example:${own}/app:1`), { code: 'E_REGISTRY_FAILING', message: /503 Service/ })
})

test('words of a registry stay short, and on their line', t => {
  const { message } = registryProblem(new RegistryFailure('answer', `a\nb\u001b[31m${'x'.repeat(10_000)}`), {
    image: 'a',
    registry: 'b',
    name: 'a',
    version: 'latest',
    as: 'anonymous'
  })
  t.match(message, /a b \[31mxxx/)
  t.ok(message.length < 700)
  t.end()
})
