import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { allow, definePlugin } from 'busbar/sdk'
import { createTestKernel, TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { capConnections, Http1Request, inTurn } from '../../sdk/http1/index.js'

/** What the connections of one client, and of all clients, may have waiting. */
const ofClient = 1_000
const inAll = 2_000

/** Answers when it is told to. */
function gate() {
  let open = (): void => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  const definition = definePlugin({
    id: 'slow',
    routes(route) {
      route({
        method: 'GET',
        url: '/api/slow',
        summary: 'Waits',
        access: allow.public('a test'),
        handler: async ({ signal }) => {
          const aborted = new Promise(resolve => {
            signal.addEventListener('abort', resolve)
          })
          await Promise.race([opened, aborted])
          return { done: true }
        }
      })
    }
  })
  return { plugin: { manifest: { id: 'slow' }, definition }, open }
}

interface Client {
  readonly socket: Socket
  said: string
  isClosed: boolean
}

async function connected(t: Test, port: number, count: number, localAddress: string): Promise<Client[]> {
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect({ port, host: '127.0.0.1', localAddress })
      const client: Client = { socket, said: '', isClosed: false }
      socket.on('error', () => {})
      socket.on('data', chunk => {
        client.said += String(chunk)
      })
      socket.on('close', () => {
        client.isClosed = true
      })
      t.teardown(() => {
        socket.destroy()
      })
      await once(socket, 'connect')
      return client
    })
  )
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const answers = (said: string): string[] => said.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []
const count = (clients: readonly Client[], status: string): number =>
  clients.flatMap(({ said }) => answers(said)).filter(one => one === status).length

/** How many requests Node has made on the platform's server. */
function countRequests(k: TestKernel): () => number {
  let made = 0
  k.kernel.edge.server.prependListener('request', () => {
    made++
  })
  return () => made
}

/** Whatever was written before it has been read. */
const settled = async (k: TestKernel): Promise<void> => {
  for (let n = 0; n < 3; n++) await new TestClient(k.url).get('/api/version')
}

test('what the connections of one client send ahead is bounded by all of them together', async t => {
  const { plugin, open } = gate()
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(() => k.close())
  const made = countRequests(k)
  const clients = await connected(t, k.port, 40, '127.0.0.2')
  for (const { socket } of clients) socket.write(get('/api/slow') + get('/api/version').repeat(60))
  await until(() => made() >= 40 + ofClient, 'what may wait has come')
  await settled(k)
  // Of each connection the first, and the one that is refused.
  t.ok(made() <= ofClient + 2 * 40 + 3, `${made()} requests were made of 2440`)

  const [other] = await connected(t, k.port, 1, '127.0.0.3')
  other?.socket.write(get('/api/version').repeat(20))
  await until(() => answers(other?.said ?? '').length === 20, 'another client has its answers')

  open()
  await until(() => count(clients, '200') === 40 + ofClient, 'whatever could wait is answered')
  await until(() => count(clients, '429') === 24, 'the first that could not is refused')
  const refused = clients.filter(({ said }) => answers(said).at(-1) === '429')
  t.equal(refused.length, 24, 'in its turn, with which its connection ends')
  for (const { said } of refused)
    t.match(
      said,
      /HTTP\/1\.1 429 (?=[\s\S]*connection: close)(?=[\s\S]*retry-after: \d+)(?=[\s\S]*nosniff)[\s\S]*"code":"E_TOO_FAR_AHEAD"/i
    )
  await until(() => refused.every(({ isClosed }) => isClosed), 'each of those connections ends')

  const [again] = await connected(t, k.port, 1, '127.0.0.2')
  again?.socket.write(get('/api/version').repeat(60))
  await until(() => answers(again?.said ?? '').length === 60, 'a connection of the same client is answered')
  t.same([...new Set(answers(again?.said ?? ''))], ['200'])
})

test('what waits of connections that have closed counts no more', async t => {
  const { plugin } = gate()
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(() => k.close())
  const made = countRequests(k)
  const clients = await connected(t, k.port, 20, '127.0.0.2')
  for (const { socket } of clients) socket.write(get('/api/slow') + get('/api/version').repeat(90))
  await until(() => made() >= 20 + ofClient, 'what may wait has come')
  for (const { socket } of clients) socket.destroy()
  await until(() => k.inFlight('slow') === 0, 'they are gone')
  const [again] = await connected(t, k.port, 1, '127.0.0.2')
  again?.socket.write(get('/api/version').repeat(90))
  await until(() => answers(again?.said ?? '').length === 90, 'a connection of the same client is answered')
})

test('what all clients send ahead has a bound too', async t => {
  const { plugin } = gate()
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(() => k.close())
  const made = countRequests(k)
  for (let address = 2; address < 7; address++) {
    const clients = await connected(t, k.port, 15, `127.0.0.${address}`)
    for (const { socket } of clients) socket.write(get('/api/slow') + get('/api/version').repeat(90))
  }
  await until(() => made() >= 75 + inAll, 'what may wait has come')
  await settled(k)
  t.ok(made() <= inAll + 2 * 75 + 3, `${made()} requests were made of 6825`)
})

test('a proxy of TRUST_PROXY, which stands for many clients, has the bound of all', async t => {
  const { plugin } = gate()
  const k = await createTestKernel({ inline: [plugin], environment: { TRUST_PROXY: '127.0.0.2' } })
  t.teardown(() => k.close())
  const made = countRequests(k)
  const clients = await connected(t, k.port, 20, '127.0.0.2')
  for (const { socket } of clients) socket.write(get('/api/slow') + get('/api/version').repeat(90))
  await until(() => made() === 20 * 91, 'all that it has sent ahead waits')
})

test('of requests that were never begun there is one line for their connection', async t => {
  const { plugin } = gate()
  const lines: string[] = []
  const k = await createTestKernel({
    inline: [plugin],
    environment: { LOG_LEVEL: 'info' },
    onLog: line => lines.push(line)
  })
  t.teardown(() => k.close())
  const made = countRequests(k)
  const [client] = await connected(t, k.port, 1, '127.0.0.2')
  client?.socket.write(get('/api/slow') + get('/api/version').repeat(50))
  await until(() => made() === 51, 'all have come')
  client?.socket.destroy()
  await until(() => lines.some(line => line.includes('never begun')), 'there is a line')
  await settled(k)
  const ofClientLines = lines.filter(line => line.includes('"ip":"127.0.0.2"'))
  t.equal(ofClientLines.length, 1, ofClientLines.join('\n'))
  t.match(JSON.parse(ofClientLines[0] ?? '{}'), { level: 'info', requests: 50, ip: '127.0.0.2' })

  const [quiet] = await connected(t, k.port, 1, '127.0.0.3')
  quiet?.socket.write(get('/api/version'))
  await until(() => answers(quiet?.said ?? '').length === 1, 'an ordinary request is answered')
  quiet?.socket.destroy()
  await settled(k)
  t.equal(lines.filter(line => line.includes('never begun')).length, 1, 'of others there is none')
})

test('a request that comes after the whole of an answer waits without counting, as its client sends nothing ahead', async t => {
  const held: Array<() => void> = []
  let made = 0
  const server = createServer({ IncomingMessage: Http1Request }, (request, response) => {
    made++
    inTurn(request, response, () => {
      if (request.url === '/held') return void held.push(() => response.end('x'))
      response.writeHead(200, { 'content-length': 1 })
      response.write('x')
      if (request.url !== '/late') return void response.end()
      // The client has all of it, and this side still waits for the end of its write.
      response.socket?.cork()
      response.end()
    })
  })
  capConnections(server, { inAll: 100, perAddress: 100 })
  server.listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const full = await connected(t, port, 12, '127.0.0.2')
  for (const { socket } of full) socket.write(get('/held') + get('/').repeat(90))
  await until(() => made >= 12 + ofClient, 'as much waits as may')

  let ofServer: Socket | undefined
  server.once('connection', socket => {
    ofServer = socket
  })
  const [client] = await connected(t, port, 1, '127.0.0.2')
  client?.socket.write(get('/late'))
  await until(() => answers(client?.said ?? '').length === 1, 'the first answer is there')
  const before = made
  client?.socket.write(get('/'))
  await until(() => made === before + 1, 'the next request has come')
  ofServer?.uncork()
  await until(() => answers(client?.said ?? '').length === 2, 'the second answer is there')
  t.same(answers(client?.said ?? ''), ['200', '200'])
  for (const { socket } of full) socket.destroy()
})
