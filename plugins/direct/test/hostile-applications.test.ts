import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { type Forwarder, openForwarder } from '../forwarder.js'
import { speak } from './origin.js'

const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
const expect = 'Connection: close\r\nExpect: 100-continue\r\n'
const get = (more = ''): string => `GET / HTTP/1.1\r\nHost: a\r\n${more}\r\n`

/** A forwarder to an application that says what it likes. */
async function forwarding(t: Test, answer: (socket: Socket) => void): Promise<Forwarder> {
  const sockets = new Set<Socket>()
  const application = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
    socket.on('data', () => {})
  })
  await new Promise<void>(resolve => application.listen(0, '127.0.0.1', resolve))
  const { port } = application.address() as AddressInfo
  const target = { deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port }
  const forwarder = await openForwarder({ host: '127.0.0.1', port: 0 }, target)
  t.teardown(async () => {
    await forwarder.close()
    for (const socket of sockets) socket.destroy()
    application.close()
  })
  return forwarder
}

/** Writes the same for as long as somebody takes it. */
function endlessly(socket: Socket, text: string): void {
  const bytes = Buffer.from(text.repeat(Math.ceil(50_000 / text.length)))
  const push = (): void => {
    while (!socket.destroyed && socket.write(bytes));
    if (!socket.destroyed) socket.once('drain', push)
  }
  push()
}

const interim = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 102 Processing\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'
]

test('an application that sends interim answers without end is answered for with 502, and only one of them is handed on', async t => {
  for (const text of interim) {
    const forwarder = await forwarding(t, socket => endlessly(socket, text))
    for (const more of ['Connection: close\r\n', upgrade, `${expect}Content-Length: 5\r\n`]) {
      const { said } = await speak(forwarder.port, get(more))
      t.match(said, /^(HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 502 /, `${text.slice(9, 12)} ${more}`)
    }
  }
})

test('a few interim answers are in the way of nothing', async t => {
  const forwarder = await forwarding(t, socket => {
    socket.end(`${interim.join('').repeat(4)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
  })
  const { said } = await speak(forwarder.port, get(`${expect}Content-Length: 0\r\n`))
  t.match(said, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 [\s\S]*ok$/)
  t.match((await speak(forwarder.port, get('Connection: close\r\n'))).said, /^HTTP\/1\.1 200 [\s\S]*ok$/)
})

test('a 101 that names no protocol is answered for with 502, asked for or not', async t => {
  const forwarder = await forwarding(t, socket => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\nbytes of another protocol')
  })
  for (const more of ['Connection: close\r\n', upgrade]) {
    const { said } = await speak(forwarder.port, get(more))
    t.match(said, /^HTTP\/1\.1 502 /, more)
    t.notMatch(said, /another protocol/)
  }
})

test('an answer in thousands of tiny chunks is handed on in fewer, and whole', async t => {
  const forwarder = await forwarding(t, socket => {
    socket.end(
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(50_000)}0\r\nX-Sum: 1\r\n\r\n`
    )
  })
  const { said } = await speak(forwarder.port, get('Connection: close\r\n'))
  const chunks = [...said.slice(said.indexOf('\r\n\r\n')).matchAll(/\r\n([\da-f]+)\r\n(a+)/g)]
  t.equal(
    chunks.reduce((sum, [, , data = '']) => sum + data.length, 0),
    50_000
  )
  t.match(said, /0\r\nX-Sum: 1\r\n\r\n$/)
  t.ok(chunks.length < 1_000, `${chunks.length} chunks`)
})

test('an application that answers with more headers than anybody has is answered for with 502', async t => {
  const answer = (count: number): string =>
    `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${Array.from({ length: count }, (_, at) => `X-${at}: a\r\n`).join('')}\r\nok`
  for (const more of ['Connection: close\r\n', upgrade]) {
    const many = await forwarding(t, socket => socket.end(answer(1_500)))
    t.match((await speak(many.port, get(more))).said, /^HTTP\/1\.1 502 /)
    const some = await forwarding(t, socket => socket.end(answer(150)))
    t.match((await speak(some.port, get(more))).said, /^HTTP\/1\.1 200 [\s\S]*X-149: a[\s\S]*ok$/)
  }
})
