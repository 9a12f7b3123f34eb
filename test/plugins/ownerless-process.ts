/** A process of its own for `uncaught-errors.test.ts`: third-party plugins whose errors Node hands over without an owner, or with another's. */
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, constants } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel } from 'busbar/sdk/testing'
import { catchUncaughtErrors } from '../../core/frames/uncaught-errors.js'
import { routeText, within, writePlugin } from './third-party-kit.js'

let exits = 0
const uncaughtErrors = catchUncaughtErrors(() => {
  exits++
})
const lines: string[] = []
const home = await mkdtemp(join(tmpdir(), 'busbar-ownerless-'))
const k = await createTestKernel({ thirdParty: home, onLog: line => lines.push(line) })
uncaughtErrors.reportTo(k.kernel)
const admin = await k.as.session()

const health = async (): Promise<unknown> => {
  const { status, body } = await k.as.anonymous().get('/healthz')
  return { status, healthy: body.healthy, uncaught: body.checks['uncaught errors'] }
}
const told = (text: string): number =>
  lines.filter(line => line.includes('an error was not caught') && line.includes(text)).length
const state = async (id: string): Promise<unknown> => {
  const { status, body } = await admin.get(`/api/plugins/${id}`)
  return status === 200 ? { state: body.state, reason: body.reason } : status
}

const outcomes: Record<string, unknown> = { before: await health() }
process.emit('uncaughtException', new Error('a fault of the kernel'))
outcomes.exitsWithoutThirdParties = exits
exits = 0

await writePlugin(
  home,
  'careless',
  `
  start ({ onStop }) {
    const server = http2.createServer()
    server.on('stream', (stream, headers) => {
      stream.on('data', () => { if (headers[':path'] === '/string') throw 'a string of http2' })
    })
    onStop(() => { server.close() })
    return new Promise(resolve => { server.listen(0, '127.0.0.1', () => { globalThis.carelessPort = server.address().port; resolve({}) }) })
  },
  routes (route) {
    ${routeText('careless', 'memory', `() => { new Worker('const a = []; for (;;) a.push(new Array(1000).fill(1))', { eval: true, resourceLimits: { maxOldGenerationSizeMb: 10 } }); return {} }`)}
    ${routeText('careless', 'callsites', `() => { Error.prepareStackTrace = (error, sites) => sites; setTimeout(() => { setTimeout(() => { Error.prepareStackTrace = undefined }, 50); throw new Error('a stack of call sites') }, 1); return {} }`)}
    ${routeText('careless', 'unreadable', `() => { Error.prepareStackTrace = () => { throw new Error('no stack') }; setTimeout(() => { setTimeout(() => { Error.prepareStackTrace = undefined }, 50); throw new Error('a stack that throws') }, 1); return {} }`)}
    ${routeText('careless', 'remove', `() => { const mine = () => {}; process.on('SIGTERM', mine); process.removeAllListeners('SIGTERM'); process.removeAllListeners(); for (const name of ['uncaughtException', 'unhandledRejection']) for (const listener of process.listeners(name)) process.off(name, listener); void Promise.reject(new Error('after removing listeners')); return {} }`)}
    ${routeText('careless', 'subscribe', `async () => { const { channel } = await import('node:diagnostics_channel'); channel('http.server.request.start').subscribe(() => { throw new Error('a subscriber of requests') }); return {} }`)}
    ${routeText('careless', 'lazy', `() => { let reads = 0; const error = new Error('lazy'); Object.defineProperty(error, 'stack', { get () { if (reads++ > 0) throw new Error('read again'); return 'a stack' } }); setTimeout(() => { throw error }, 1); return {} }`)}
    ${routeText('careless', 'domain', `async () => { const { create } = await import('node:domain'); const domain = create(); domain.on('error', () => { throw new Error('a listener of a domain') }); domain.run(() => setTimeout(() => { throw new Error('in a domain') }, 5)); return {} }`)}
    ${routeText('careless', 'string', `() => { new Worker('', { eval: true }).on('exit', () => { throw 'a string of a worker' }); return {} }`)}
  }`,
  { before: "import http2 from 'node:http2'; import { Worker } from 'node:worker_threads'" }
)
await k.enable('careless')
const port = (globalThis as { carelessPort?: number }).carelessPort ?? 0

async function reset(path: string): Promise<void> {
  const client = connect(`http://127.0.0.1:${port}`).on('error', () => {})
  const stream = client.request({ ':method': 'POST', ':path': path }).on('error', () => {})
  stream.write('x')
  await new Promise(resolve => setTimeout(resolve, 200))
  stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
  await new Promise(resolve => setTimeout(resolve, 200))
  client.destroy()
}
const attempts: Readonly<Record<string, readonly [text: string, () => Promise<unknown>]>> = {
  'a reset stream of http2': ['NGHTTP2_PROTOCOL_ERROR', async () => await reset('/')],
  'a string thrown by http2': ['a string of http2', async () => await reset('/string')],
  'a worker without memory': [
    'ERR_WORKER_OUT_OF_MEMORY',
    async () => await admin.get('/api/x/careless/memory')
  ],
  'listeners that a plugin removes': [
    'after removing listeners',
    async () => await admin.get('/api/x/careless/remove')
  ],
  'a subscriber of requests that throws': [
    'a subscriber of requests',
    async () => {
      await admin.get('/api/x/careless/subscribe')
      await health()
    }
  ],
  'a stack that can be read once': [
    'something that is not an error was thrown',
    async () => await admin.get('/api/x/careless/lazy')
  ],
  'a stack of call sites': [
    'something that is not an error was thrown',
    async () => await admin.get('/api/x/careless/callsites')
  ],
  'a stack that throws': ['a stack that throws', async () => await admin.get('/api/x/careless/unreadable')],
  'a domain with a listener that throws': [
    'ERR_DOMAIN_CALLBACK_NOT_AVAILABLE',
    async () => await admin.get('/api/x/careless/domain')
  ],
  'a string thrown for a worker': [
    'a string of a worker',
    async () => await admin.get('/api/x/careless/string')
  ]
}
for (const [name, [text, attempt]] of Object.entries(attempts)) {
  await attempt()
  // What refuses a request is told with that.
  outcomes[name] = await within(
    15_000,
    () => told(text) > 0 || lines.some(line => line.includes(text) && line.includes('a request failed'))
  )
}
outcomes.withBody =
  (await within(
    8_000,
    async () => (await admin.post('/api/projects', { name: 'x', slug: 'with-body' })).status === 201
  )) === true
outcomes.exits = exits
await new Promise(resolve => setTimeout(resolve, 1_100))
outcomes.after = await health()

// What runs in the kernel's frame, or in that of another plugin's server, and is this plugin's code.
await writePlugin(
  home,
  'watching',
  `
  start ({ onStop }) {
    const look = () => { if (globalThis.watchingFails) throw new Error('thrown by a subscriber') }
    diagnostics.subscribe('http.server.request.start', look)
    onStop(() => { diagnostics.unsubscribe('http.server.request.start', look) })
    return {}
  }`,
  { before: "import diagnostics from 'node:diagnostics_channel'" }
)
await k.enable('watching')
const statuses: unknown[] = []
Object.assign(globalThis, { watchingFails: true })
for (let n = 0; n < 10; n++)
  statuses.push(
    await admin.get('/api/projects').then(
      ({ status }) => status,
      () => 'cut'
    )
  )
Object.assign(globalThis, { watchingFails: false })
outcomes.requestsOfOthers = [...new Set(statuses)]
outcomes.watching = await state('watching')

// One that fails all the time is told of once in a second.
await writePlugin(
  home,
  'noisy',
  "start ({ onStop }) { const timer = setInterval(() => { globalThis.noise = (globalThis.noise ?? 0) + 1; throw new Error('noise') }, 2); onStop(() => { clearInterval(timer) }); return {} }"
)
await k.enable('noisy')
await new Promise(resolve => setTimeout(resolve, 2_000))
await k.disable('noisy')
await new Promise(resolve => setTimeout(resolve, 1_500))
const noisy = lines.filter(
  line => line.includes('"plugin":"noisy"') && line.includes('an error was not caught')
)
outcomes.noisy = {
  thrown: (globalThis as { noise?: number }).noise,
  lines: noisy.length,
  counted: noisy.reduce((sum, line) => sum + ((JSON.parse(line) as { times?: number }).times ?? 1), 0)
}

process.send?.(outcomes)
await k.close()
await rm(home, { recursive: true, force: true })
process.exit(0)
