import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { type Test, test } from 'tap'
import { registryTrial } from '../registry/account-trial.js'
import { clock, log, selfSigned, trustEverybody } from './kit.js'
import { policyOf } from './policy-of.js'

const account = { username: 'deployer', password: 's3cret-0123456789' }
const basic = `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`
const pem = selfSigned()

async function port(t: Test, server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A server that notes which credentials came. */
async function serve(t: Test, answer: RequestListener, tls = false) {
  const came: Array<string | undefined> = []
  const listener: RequestListener = (request, response) => {
    came.push(request.headers.authorization)
    answer(request, response)
  }
  const server = tls ? createTlsServer({ key: pem, cert: pem }, listener) : createServer(listener)
  return { came, port: await port(t, server as unknown as Server) }
}

const tried = async (registry: string, hosts = 'allow', name = '127.0.0.1') =>
  await registryTrial({
    rules: { hostPolicy: policyOf(hosts), lookup: async () => [{ address: name, family: 4 }] },
    clock,
    log
  }).try(registry, account, new AbortController().signal)

const challenged =
  (challenge: string, known: string): RequestListener =>
  (request, response) => {
    if (request.headers.authorization === known) response.writeHead(200).end('{}')
    else response.writeHead(401, { 'www-authenticate': challenge }).end()
  }

test('an account is let in or refused by what the registry, or its token service, says of it', async t => {
  const knows = await serve(t, challenged('Basic realm="lab"', basic))
  t.same(await tried(`127.0.0.1:${knows.port}`), { status: 'ok', reason: null })
  t.same(knows.came, [undefined, basic], 'no credentials go where none are asked for')

  const refuses = await serve(t, challenged('Basic realm="lab"', 'Basic other'))
  t.match(await tried(`127.0.0.1:${refuses.port}`), {
    status: 'refused',
    reason: /refused the user name deployer and its password .*set the account anew/
  })

  for (const [status, verdict] of [
    [200, 'ok'],
    [401, 'refused'],
    [503, 'unreachable']
  ] as const) {
    const tokens = await serve(t, (_request, response) => response.writeHead(status).end('{"token":"known"}'))
    const registry = await serve(
      t,
      challenged(`Bearer realm="http://127.0.0.1:${tokens.port}/token",service="x"`, 'Bearer known')
    )
    t.match(await tried(`127.0.0.1:${registry.port}`), { status: verdict }, String(status))
    t.same(tokens.came, [basic])
  }
})

test('a registry that asks for no account was not told one, and a web page is no registry', async t => {
  const open = await serve(t, (_request, response) => response.writeHead(200).end('{}'))
  t.match(await tried(`127.0.0.1:${open.port}`), { status: 'ok', reason: /asks for no account before/ })
  t.same(open.came, [undefined])
  const page = await serve(t, (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
  )
  t.match(await tried(`127.0.0.1:${page.port}`), { status: 'unreachable', reason: /web page/ })
  const { port: closed } = await serve(t, () => {})
  t.match(await tried(`127.0.0.1:${closed}`.replace(/\d+$/, '1')), {
    status: 'unreachable',
    reason: /ECONNREFUSED/
  })
})

test('the host that a registry redirects to gets no credentials', async t => {
  const target = await serve(t, challenged('Basic realm="other"', basic))
  const registry = await serve(t, (request, response) => {
    if (request.headers.authorization === undefined)
      response.writeHead(401, { 'www-authenticate': 'Basic realm="lab"' }).end()
    else response.writeHead(307, { location: `http://127.0.0.1:${target.port}/v2/` }).end()
  })
  t.match(await tried(`127.0.0.1:${registry.port}`), { status: 'unreachable' })
  t.same(registry.came, [undefined, basic])
  t.same(target.came, [undefined])
})

test('no account goes over an unencrypted connection to another machine, nor to a token service on one', async t => {
  trustEverybody(t)
  const plain = await serve(t, challenged('Basic realm="lab"', basic))
  t.match(await tried(`world.example:${plain.port}`), { status: 'unreachable' })
  t.same(
    plain.came.filter(header => header !== undefined),
    []
  )
  const tokens = await serve(t, (_request, response) => response.writeHead(200).end('{"token":"known"}'))
  const registry = await serve(
    t,
    challenged(`Bearer realm="http://world.example:${tokens.port}/token"`, 'Bearer known'),
    true
  )
  t.match(await tried(`world.example:${registry.port}`), {
    status: 'unreachable',
    reason: /the connection to its token service is not encrypted/
  })
  t.same(tokens.came, [])
})

test('where private hosts are denied, none is asked', async t => {
  const registry = await serve(t, challenged('Basic realm="lab"', basic))
  t.match(await tried(`world.example:${registry.port}`, 'deny', '127.0.0.1'), {
    status: 'unreachable',
    reason: /private/
  })
  t.match(await tried(`world.example:${registry.port}`, 'allow', '169.254.169.254'), {
    status: 'unreachable'
  })
  t.same(registry.came, [])
})
