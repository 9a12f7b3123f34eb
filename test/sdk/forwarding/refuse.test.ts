import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { maxHeaders } from 'busbar/sdk/http1'
import { test } from 'tap'
import { isFit, openOutgoing } from '../../../sdk/http1/forwarding/outgoing.js'
import { type Refusal, refuse } from '../../../sdk/http1/forwarding/refusal.js'
import type { Route } from '../../../sdk/http1/forwarding/route.js'
import { createSwitchMeter } from '../../../sdk/http1/forwarding/switch-meter.js'
import { forwardUpgrade } from '../../../sdk/http1/forwarding/upgrade.js'
import { createUpstream } from '../../../sdk/http1/forwarding/upstream.js'

/** What is done with a response in this state. */
function refused(refusal: Refusal, state: { headersSent?: boolean; destroyed?: boolean } = {}) {
  const calls: string[] = []
  const response = {
    headersSent: false,
    destroyed: false,
    shouldKeepAlive: true,
    head: undefined as Readonly<Record<string, unknown>> | undefined,
    status: undefined as number | undefined,
    ...state,
    destroy: () => void calls.push('destroy'),
    writeHead(status: number, _words: string, head: Readonly<Record<string, unknown>>) {
      calls.push('writeHead')
      response.status = status
      response.head = head
    },
    end: () => void calls.push('end')
  }
  refuse(response as unknown as ServerResponse, refusal)
  return { ...response, calls }
}

test('a response that has begun, or whose connection is gone, is ended and gets no second answer', async t => {
  t.same(refused('broken').calls, ['writeHead', 'end'])
  for (const state of [{ headersSent: true }, { destroyed: true }, { headersSent: true, destroyed: true }])
    t.same(refused('broken', state).calls, ['destroy'], JSON.stringify(state))
})

test('a connection goes on after a refusal only where the request was understood', async t => {
  for (const [refusal, isKept] of [
    ['badTarget', false],
    ['badHead', false],
    ['otherHost', false],
    ['tooManyHeaders', false],
    ['badUpgrade', false],
    ['badCoding', false],
    ['noTarget', true],
    ['unreachable', true],
    ['answerTimeout', true]
  ] as const)
    t.equal(refused(refusal).shouldKeepAlive, isKept, refusal)
  t.equal(refused('noTarget').head?.['Retry-After'], '1')
  t.notOk('Retry-After' in (refused('unreachable').head ?? {}))
})

test('an answer of as many headers as are kept is handed on, and one of more is not', async t => {
  const sockets = new Set<Socket>()
  const container = createTcpServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', data => {
      const count = Number(String(data).split(' ')[1]?.slice(1))
      const more = Array.from({ length: count - 1 }, (_, at) => `X-${at}: 1\r\n`).join('')
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${more}\r\n`)
    })
  })
  await new Promise<void>(resolve => container.listen(0, '127.0.0.1', resolve))
  const { port } = container.address() as AddressInfo
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    container.close()
  })
  const upstream = createUpstream({ deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port })
  const answerOf = async (headers: number): Promise<IncomingMessage> => {
    const outgoing = openOutgoing(
      upstream,
      { agent: false, method: 'GET', path: `/${headers}`, headers: { Host: 'a' } },
      false
    )
    t.equal(outgoing?.maxHeadersCount, maxHeaders + 1)
    return await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing?.once('response', answer => resolve(answer.resume())).once('error', reject)
    })
  }
  const all = await answerOf(maxHeaders)
  t.ok(isFit(all))
  t.equal(Object.keys(all.headers).length, maxHeaders, 'none of them is hidden')
  for (const count of [maxHeaders + 1, maxHeaders + 100]) t.notOk(isFit(await answerOf(count)), `${count}`)
  t.notOk(isFit({ ...all, rawHeaders: [], statusCode: 101 } as unknown as IncomingMessage))
})

/** The answer to an upgrade, and what the meter was told. */
async function upgraded(current: Route['current']): Promise<{ said: string; told: readonly string[] }> {
  const told: string[] = []
  const meter = new Proxy(createSwitchMeter(), {
    get: (_, name) => () => void told.push(String(name))
  })
  const route: Route = {
    ownHost: undefined,
    current,
    meter,
    limits: { connectTimeoutMs: 5000, answerTimeoutMs: 5000, lingerMs: 1000, readerMs: 5000 }
  }
  const server = createServer()
  server.on('upgrade', (request, client, head) =>
    forwardUpgrade({ decide: () => route, limits: route.limits }, request, client as Socket, head)
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  let said = ''
  client.on('data', data => {
    said += String(data)
  })
  await new Promise(resolve => client.once('close', resolve))
  await new Promise(resolve => server.close(resolve))
  return { said, told }
}

test('an upgrade that reaches no container is given to three of them, and told as one failure', async t => {
  let entered = 0
  let left = 0
  const { said, told } = await upgraded(() => {
    // Each look finds another container, none of which listens.
    const upstream = createUpstream({ deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port: 1 })
    return {
      ...upstream,
      enter: () => void entered++,
      leave: () => void left++
    }
  })
  t.match(said, /^HTTP\/1\.1 502 /)
  t.equal(entered, 3)
  t.equal(left, 3, 'each is left')
  t.same(told, ['began', 'failed'])
})

test('an upgrade while nothing runs is one failure', async t => {
  const { said, told } = await upgraded(() => null)
  t.match(said, /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1/)
  t.same(told, ['began', 'failed'])
})
