/** A process of its own for `uncaught-errors.test.ts`: a platform whose plugin throws wherever it can be called back. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { allow, definePlugin, kernel, type SseFrame, sse } from 'busbar/sdk'
import { createTestKernel, TestSocket } from 'busbar/sdk/testing'
import { catchUncaughtErrors } from '../../core/frames/uncaught-errors.js'
import { within } from './third-party-kit.js'

/** What happened after one fault: the state of the plugin, and whether the connection it was thrown for is gone. */
export interface Outcome {
  readonly reason: string | undefined
  readonly isClosed: boolean
  readonly isHealthy: boolean
}

const uncaughtErrors = catchUncaughtErrors(error => {
  console.error(error)
  process.exit(1)
})
const ports = new Map<string, number>()
const fail = (where: string): never => {
  throw new Error(`thrown by ${where}`)
}

async function open(name: string, server: Server): Promise<Server> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  ports.set(name, (server.address() as AddressInfo).port)
  return server
}

async function* throwingFrames(): AsyncGenerator<SseFrame> {
  yield { data: 'begun' }
  setTimeout(() => fail('a timer of a stream'), 1)
  await new Promise(() => {})
}

const throwing = definePlugin({
  id: 'throwing',
  needs: { bus: kernel.bus },
  async start({ use, onStop }) {
    const http = createHttpServer((request, response) => {
      if (request.url === '/now') fail('a request')
      if (request.url === '/later') setTimeout(() => fail('a timer of a request'), 1)
      if (request.url === '/promise') void Promise.reject(new Error('thrown by a promise of a request'))
      if (request.url === '/body') request.on('data', () => fail('the body of a request'))
      if (request.url === '/close') {
        response.on('close', () => fail('the close of an answer'))
        response.end()
      }
    })
    http.on('upgrade', (request, socket) => {
      if (request.url === '/now') fail('an upgrade')
      socket.on('data', () => fail('the data of an upgraded connection'))
    })
    http.on('clientError', () => fail('a client error'))
    const servers = [
      await open('http', http),
      await open(
        'tcp',
        createServer(socket => {
          socket.on('data', () => fail('the data of a connection'))
        })
      ),
      await open(
        'error',
        createServer(socket => {
          socket.emit('error', new Error('thrown by an error without a listener'))
        })
      ),
      await open(
        'connection',
        createServer(() => fail('a connection'))
      )
    ]
    onStop(
      use.bus.onSignal('go', () => {
        setTimeout(() => fail('a timer of a signal'), 1)
      })
    )
    onStop(() => {
      for (const server of servers) server.close()
    })
    return { bus: use.bus }
  },
  routes(route) {
    route({
      method: 'POST',
      url: '/api/throwing/signal',
      summary: 'Sends a signal',
      access: allow.session({ project: 'none' }),
      handler: async (_request, { bus }) => {
        await bus.signal('go', '')
      }
    })
    route({
      method: 'GET',
      url: '/api/throwing/stream',
      summary: 'Throws while it streams',
      access: allow.session({ project: 'none' }),
      produces: 'text/event-stream',
      handler: ({ signal }) => {
        signal.addEventListener('abort', () => fail('the end of a request'))
        return sse(throwingFrames())
      }
    })
  },
  sockets(socket) {
    socket({
      url: '/api/ws/throwing',
      summary: 'Throws when it ends',
      access: allow.session({ project: 'none' }),
      handler: async duplex => {
        duplex.signal.addEventListener('abort', () => fail('the end of a socket'))
        for await (const _ of duplex.messages);
      }
    })
  }
})

const logged: string[] = []
const k = await createTestKernel({
  onLog: line => {
    if (line.includes('was not caught')) logged.push(line)
  },
  inline: [{ manifest: { id: 'throwing', grants: ['bus'] }, definition: throwing }]
})
uncaughtErrors.reportTo(k.kernel)
const admin = await k.as.session()

/** Sends `bytes` to a server of the plugin, and waits for the fault and for the end of the connection. */
async function speak(server: string, ...bytes: readonly string[]): Promise<Outcome> {
  const socket = connect(ports.get(server) ?? 0, '127.0.0.1').on('error', () => {})
  let isClosed = false
  socket.on('close', () => {
    isClosed = true
  })
  socket.resume()
  await once(socket, 'connect')
  for (const piece of bytes) {
    socket.write(piece)
    await new Promise(resolve => setTimeout(resolve, 30))
  }
  const outcome = await settle(() => isClosed)
  socket.destroy()
  return outcome
}

/** What the fault was, when it has been told. The plugin is well again after. */
async function settle(isClosed: () => boolean): Promise<Outcome> {
  const entry = k.kernel.reconciler.entries.get('throwing')
  await within(3_000, () => entry?.state.name === 'degraded')
  await within(1_000, isClosed)
  const { status, body } = await admin.get('/api/plugins/throwing')
  const reason = status === 200 ? (body.reason as string | undefined) : undefined
  await k.disable('throwing')
  await k.enable('throwing')
  return { reason, isClosed: isClosed(), isHealthy: (await k.as.anonymous().get('/healthz')).status === 200 }
}

/** A listener of the platform's own server that throws. */
async function failOnce(event: 'connection' | 'request' | 'upgrade'): Promise<Outcome> {
  const name = `a ${event} of the platform itself`
  const { server } = k.kernel.edge
  const thrower = (): never => fail(name)
  server.prependListener(event, thrower)
  const socket = connect(k.port, '127.0.0.1').on('error', () => {})
  let isClosed = false
  socket.on('close', () => {
    isClosed = true
  })
  socket.resume()
  socket.write(get('/api/version', ...(event === 'upgrade' ? upgrade : [])))
  await within(3_000, () => isClosed)
  server.removeListener(event, thrower)
  await within(1_000, () => logged.some(line => line.includes(`thrown by ${name}`)))
  const reason = logged.some(line => line.includes(`thrown by ${name}`))
    ? `an error was not caught: thrown by ${name}`
    : undefined
  return { reason, isClosed, isHealthy: (await k.as.anonymous().get('/healthz')).status === 200 }
}

const get = (path: string, ...headers: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: a', ...headers, '', ''].join('\r\n')
const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
const yes = (): boolean => true

const outcomes: Record<string, Outcome> = {}
const attempts: Readonly<Record<string, () => Promise<Outcome>>> = {
  'a request': async () => await speak('http', get('/now')),
  'a timer of a request': async () => await speak('http', get('/later')),
  'a promise of a request': async () => await speak('http', get('/promise')),
  'the body of a request': async () => await speak('http', get('/body', 'Content-Length: 5'), 'hello'),
  'the close of an answer': async () => await speak('http', get('/close')),
  'an upgrade': async () => await speak('http', get('/now', ...upgrade)),
  'the data of an upgraded connection': async () => await speak('http', get('/', ...upgrade), 'hello'),
  'a client error': async () => await speak('http', 'nonsense\r\n\r\n'),
  'the data of a connection': async () => await speak('tcp', 'hello'),
  'an error without a listener': async () => await speak('error'),
  'a connection': async () => await speak('connection'),
  'a timer of a signal': async () => {
    await admin.post('/api/throwing/signal')
    return await settle(yes)
  },
  'a timer of a stream': async () => {
    const stop = new AbortController()
    const answer = await fetch(`${k.url}/api/throwing/stream`, {
      headers: admin.credential,
      signal: stop.signal
    })
    const outcome = await settle(yes)
    stop.abort()
    await answer.text().catch(() => {})
    return outcome
  },
  'the end of a socket': async () => {
    const socket = await TestSocket.open(admin, '/api/ws/throwing')
    await socket.close()
    return await settle(yes)
  }
}
for (const [name, attempt] of Object.entries(attempts)) outcomes[name] = await attempt()
for (const event of ['connection', 'request', 'upgrade'] as const)
  outcomes[`a ${event} of the platform itself`] = await failOnce(event)
process.send?.(outcomes)
await k.close()
process.exit(0)
