import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { directAddresses } from '../api.js'
import { openForwarder } from '../forwarder.js'
import { openApplication, type TestApplication } from './applications.js'
import { ask, speak, startOrigin } from './origin.js'

const environment = {
  BUSBAR_DIRECT_HOST: '*.apps.localhost',
  BUSBAR_DIRECT_BIND: '127.0.0.7',
  BUSBAR_DIRECT_PORTS: '22100-22149',
  DOCKER_HOST: 'unix:///nonexistent.sock'
}

async function kernelFor(t: Test): Promise<TestKernel> {
  const k = await createTestKernel({ environment })
  t.teardown(() => k.close())
  return k
}

/** An application that runs, with the `direct_url` of its answer. */
async function runningApplication(
  t: Test,
  k: TestKernel,
  listener: RequestListener
): Promise<TestApplication & { readonly url: URL }> {
  const origin = await startOrigin(listener)
  t.teardown(() => origin.close())
  const application = await openApplication(k)
  const target = { ...origin.target, deploymentId: randomUUID() }
  await k.service(directAddresses).switchTo(application.id, target)
  const { body } = await (await k.as.session()).get(application.path)
  t.equal(body.direct_url, application.url)
  return { ...application, url: new URL(body.direct_url) }
}

/** A request to the port of one address, for this host. */
const askAs = (at: URL, host: string, headers: Record<string, string> = {}) =>
  ask(Number(at.port), { host: '127.0.0.7', agent: false, headers: { ...headers, Host: host } })

test('with a pattern every application has a host of its own, also after a restart', async t => {
  const first = await kernelFor(t)
  const one = await runningApplication(t, first, (_, response) => response.end('one'))
  const other = await runningApplication(t, first, (_, response) => response.end('other'))
  t.equal(one.url.href, `http://${one.slug}.apps.localhost:${one.url.port}/`)
  t.equal(other.url.hostname, `${other.slug}.apps.localhost`)
  t.not(one.url.hostname, other.url.hostname)
  t.match(await askAs(one.url, one.url.host), { status: 200, body: 'one' })
  await first.stop()

  const second = await createTestKernel({ environment, state: first.state })
  t.teardown(() => second.stop())
  const { body } = await (await second.as.session()).get(one.path)
  t.equal(body.direct_url, one.url.href.slice(0, -1))
  t.match(await askAs(one.url, one.url.host), { status: 200, body: 'one' })
  t.equal((await askAs(one.url, other.url.host)).status, 421)
})

test('what a browser sends to another application’s host never reaches this one', async t => {
  const k = await kernelFor(t)
  const reached: (string | undefined)[] = []
  const one = await runningApplication(t, k, (request, response) => {
    reached.push(request.headers.host)
    response.end('one')
  })
  const other = await runningApplication(t, k, (_, response) => response.end('other'))
  const { hostname, port } = one.url
  for (const host of [
    `${other.url.hostname}:${port}`,
    `${other.url.hostname}:${other.url.port}`,
    other.url.hostname,
    `127.0.0.7:${port}`,
    `apps.localhost:${port}`,
    `x.${hostname}:${port}`,
    `${hostname}.:${port}`,
    `localhost:${port}`
  ]) {
    const answer = await askAs(one.url, host, { Cookie: 'session=of-the-other' })
    t.match(answer, { status: 421, body: /another host/ }, host)
    const upgrade = await askAs(one.url, host, { Connection: 'Upgrade', Upgrade: 'websocket' })
    t.equal(upgrade.status, 421, host)
  }
  t.same(reached, [])
  for (const host of [one.url.host, hostname, hostname.toUpperCase(), `${hostname}:80`])
    t.equal((await askAs(one.url, host)).status, 200, host)
  t.equal(reached.length, 4)
})

test('the host of an absolute target counts, and a request without any host is refused', async t => {
  const origin = await startOrigin((_, response) => response.end('ok'))
  const forwarder = await openForwarder(
    { host: '127.0.0.1', port: 0, ownHost: 'a.apps.localhost' },
    origin.target
  )
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const rest = 'Connection: close\r\n\r\n'
  for (const [head, status] of [
    ['GET http://b.apps.localhost/ HTTP/1.1\r\nHost: a.apps.localhost\r\n', 421],
    ['GET http://a.apps.localhost:1/ HTTP/1.1\r\nHost: b.apps.localhost\r\n', 200],
    ['GET / HTTP/1.0\r\n', 421]
  ] as const)
    t.match((await speak(forwarder.port, head + rest)).said, new RegExp(`^HTTP/1\\.1 ${status} `), head)
})

test('an application sets cookies for its own host and for no other, in answers and in upgrades', async t => {
  const k = await kernelFor(t)
  const cookies = (host: string | undefined): string[] => [
    'plain=1; Path=/',
    `own=1; Domain=${host}`,
    'parent=1; Domain=apps.localhost',
    'dotted=1; domain=.APPS.localhost',
    'top=1; Domain=localhost',
    'sibling=1; Domain=other-12345678.apps.localhost'
  ]
  const one = await runningApplication(t, k, (request, response) => {
    response.writeHead(200, { 'Set-Cookie': cookies(request.headers.host?.split(':')[0]) })
    response.end('ok')
  })
  const kept = ['plain=1; Path=/', `own=1; Domain=${one.url.hostname}`]
  t.same((await askAs(one.url, one.url.host)).headers['set-cookie'], kept)
  const refused = { Connection: 'Upgrade', Upgrade: 'websocket' }
  t.same((await askAs(one.url, one.url.host, refused)).headers['set-cookie'], kept)

  const origin = await startOrigin((_, response) => {
    response.writeHead(200, { 'Set-Cookie': cookies('127.0.0.2') })
    response.end('ok')
  })
  origin.server.on('upgrade', (_, socket) => {
    const lines = cookies('a.apps.localhost').map(cookie => `Set-Cookie: ${cookie}`)
    socket.end(
      ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: x', ...lines, '', ''].join('\r\n')
    )
  })
  const at = { host: '127.0.0.1', port: 0 }
  const own = await openForwarder({ ...at, ownHost: 'a.apps.localhost' }, origin.target)
  const shared = await openForwarder(at, origin.target)
  t.teardown(() => Promise.all([own.close(), shared.close(), origin.close()]))
  const { said } = await speak(
    own.port,
    'GET / HTTP/1.1\r\nHost: a.apps.localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'
  )
  t.match(said, /^HTTP\/1\.1 101 /)
  t.same(said.match(/(?<=Set-Cookie: )\w+/g), ['plain', 'own'])
  const everybodys = await ask(shared.port)
  t.same(everybodys.headers['set-cookie'], cookies('127.0.0.2'), 'what all share, all may set')
})
