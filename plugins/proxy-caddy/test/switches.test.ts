import { randomUUID } from 'node:crypto'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TrafficTarget } from 'busbar/api/deployments'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { route, table } from '../../domains/test/driver-contract.js'
import { AdminClient } from '../admin-client.js'
import { canonical } from '../config/json.js'
import { caddyLab, visit } from './caddy-lab.js'

const upload = Buffer.alloc(300_000, 'x')

/** A version of an application: says its name and how much it was sent, after a little time, and echoes over WebSocket. */
async function version(t: Test, name: string): Promise<TrafficTarget> {
  const server = createServer((incoming, answer) => {
    let length = 0
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length
    })
    incoming.on('end', () => setTimeout(() => answer.end(`${name} ${length}`), Math.random() * 8))
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => {
    socket.on('error', () => {})
    socket.on('message', message => socket.send(`${name}:${message.toString()}`))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    for (const socket of sockets.clients) socket.terminate()
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return { deploymentId: randomUUID(), containerId: name, host: '127.0.0.1', port }
}

test('twenty switches under load fail no request and no upload, leave WebSockets where they are, and the configuration as it is', async t => {
  const { driver, http, directory } = await caddyLab(t)
  const client = new AdminClient({ kind: 'unix', path: join(directory, 'admin.sock') })
  const versions = [await version(t, 'a'), await version(t, 'b')] as const
  const only = (target: TrafficTarget) => new Map([[null, target]])
  await driver.retarget('x', only(versions[0]))
  await driver.load(table(route({ hostname: 'www.example.com', applicationId: 'x' })))
  const before = canonical(await client.config())
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const ask = async (body: Buffer | undefined): Promise<string> =>
    await new Promise((resolve, reject) => {
      const outgoing = request(
        {
          ...{ host: '127.0.0.1', port: http, agent, method: body === undefined ? 'GET' : 'POST' },
          headers: { Host: 'www.example.com' }
        },
        answer => {
          let text = ''
          answer.on('data', chunk => {
            text += chunk
          })
          answer.on('error', reject)
          answer.on('end', () => resolve(`${answer.statusCode} ${text}`))
        }
      )
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  const socket = new WebSocket(`ws://127.0.0.1:${http}/`, { headers: { Host: 'www.example.com' } })
  const heard: string[] = []
  socket.on('message', message => heard.push(message.toString()))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))

  let isOver = false
  let answered = 0
  const failures: string[] = []
  const clients = Array.from({ length: 8 }, async (_, index) => {
    const body = index < 3 ? upload : undefined
    const expected = new RegExp(`^200 [ab] ${body?.length ?? 0}$`)
    while (!isOver) {
      const text = await ask(body).catch((error: Error) => error.message)
      if (expected.test(text)) answered += 1
      else failures.push(text)
    }
  })
  let served = 0
  for (let round = 1; round <= 20; round += 1) {
    const seen = answered
    await until(async () => answered > seen + 10, 'some requests between two switches')
    const [next, former] = round % 2 === 1 ? ([1, 0] as const) : ([0, 1] as const)
    const switched = await driver.switchTo('x', only(versions[next]))
    t.match(await ask(undefined), new RegExp(`^200 ${'ab'[next]}`), 'from the moment it resolves')
    // The socket of the first version is still open.
    const proof = await switched?.drain(former === 0 ? 500 : 5000)
    t.match(proof, { failed: 0, cut: former === 0 ? 1 : 0 })
    served += proof?.served ?? 0
  }
  isOver = true
  await Promise.all(clients)
  t.same(failures, [])
  t.ok(served > 20, `${served} requests were counted out of the log`)
  socket.send('still here')
  await until(async () => heard.length > 0, 'the echo')
  t.same(heard, ['a:still here'], 'the socket is where it was opened')
  socket.terminate()

  await driver.retarget('x', null)
  t.match(await visit(http, { hostname: 'www.example.com' }), { status: 503, text: /not running/ })
  t.match(await visit(http, { hostname: 'www.example.com', method: 'POST' }), { status: 503 })
  await driver.retarget('x', only(versions[0]))
  t.equal((await visit(http, { hostname: 'www.example.com' })).status, 200)
  t.equal(canonical(await client.config()), before, 'no deploy, stop or start has changed the configuration')
})
