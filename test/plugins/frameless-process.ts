/**
 * A process of its own for `frameless.test.ts`: a third-party plugin that uses the platform where Node calls it back in no frame,
 * or in that of another, and awaits nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin, service } from 'busbar/sdk'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { catchUncaughtErrors } from '../../core/frames/uncaught-errors.js'
import { within, writePlugin } from './third-party-kit.js'

/** What became of one fault. */
export interface Told {
  /** Why the plugin is degraded, when it is. */
  readonly reason: string | undefined
  /** How often the platform would have ended. */
  readonly exits: number
  /** Errors that belong to no plugin. */
  readonly uncaught: string | undefined
  readonly answer?: unknown
}

let exits = 0
const uncaughtErrors = catchUncaughtErrors(() => {
  exits++
})
const home = await mkdtemp(join(tmpdir(), 'busbar-frameless-'))
const stock = service<{ count(): Promise<void> }>('stock.main')
const k: TestKernel = await createTestKernel({
  thirdParty: home,
  inline: [
    {
      manifest: { id: 'stock' },
      definition: definePlugin({
        id: 'stock',
        provides: provide => {
          provide(stock, { count: async () => await Promise.reject(new Error('nothing in stock')) })
        }
      })
    }
  ]
})
uncaughtErrors.reportTo(k.kernel)

await writePlugin(
  home,
  'careless',
  `
  needs: { db: kernel.database, exec: kernel.exec, clock: kernel.clock, stock: service('stock.main'), again: optional(service('stock.main')) },
  start ({ use, onStop }) {
    const missing = () => use.exec.run(['/nonexistent'], { timeoutMs: 1000 })
    const calls = {
      exec: async () => { await missing() },
      sql: () => { use.db.sql('select nothing from nowhere').then(() => {}) },
      table: () => { use.db.table('nowhere').select().then(() => {}) },
      clone: () => { use.db.table('nowhere').select().clone().then(() => {}) },
      statement: async () => { await use.db.statement('s', 'select nothing from nowhere')([]) },
      transaction: async () => { await use.db.transaction(async tx => { await use.db.sql('select nothing from nowhere', [], tx) }) },
      sleep: async () => { const stop = new AbortController(); const slept = use.clock.sleep(1000, stop.signal); stop.abort(); await slept },
      service: async () => { await use.stock.count() },
      optional: async () => { await use.again.get().count() },
      limit: async () => { await withTimeLimit({ ms: 5 }, async signal => { await new Promise((resolve, reject) => { signal.addEventListener('abort', () => reject(signal.reason)) }) }) }
    }
    globalThis.careless = calls
    const registry = new FinalizationRegistry(() => { calls.sql() })
    globalThis.collect = () => { for (let at = 0; at < 3; at++) registry.register({}, at); setTimeout(gc, 100) }

    const server = http2.createServer((request, response) => {
      request.resume()
      if (request.url === '/fine') return request.on('end', () => { setTimeout(() => response.end('fine'), 300) })
      if (request.url === '/then') return request.on('end', () => { use.db.table('nowhere').select().then(() => response.end()) })
      if (request.url === '/data') return request.on('data', () => { JSON.parse('{') })
      if (request.url === '/close') { response.end(); return request.on('close', async () => { await missing() }) }
      if (request.url === '/write') return request.on('end', () => { response.end('', async () => { await missing() }) })
      if (request.url === '/now') throw new Error('thrown by a request')
      request.on('end', async () => { await missing() })
    })
    onStop(() => { server.close() })

    const prepended = () => { throw new Error('thrown by a signal') }
    const listen = async () => { await missing() }
    const once = () => { globalThis.onceHeard = (globalThis.onceHeard ?? 0) + 1 }
    const broken = async () => { throw new Error('a listener for uncaught errors') }
    process.prependListener('SIGUSR2', prepended).on('SIGUSR2', listen).once('SIGUSR2', once).on('uncaughtException', broken).on('unhandledRejection', broken)
    onStop(() => { process.off('SIGUSR2', prepended).off('SIGUSR2', listen).off('uncaughtException', broken).off('unhandledRejection', broken) })

    const look = ({ request }) => {
      if (request.url.includes('then')) use.db.sql('select nothing from nowhere').then(() => {})
      if (request.url.includes('await')) missing()
      if (request.url.includes('throw')) throw null
    }
    diagnostics.subscribe('http.server.request.start', look)
    onStop(() => { globalThis.isUnsubscribed = diagnostics.unsubscribe('http.server.request.start', look) })
    return new Promise(resolve => { server.listen(0, '127.0.0.1', () => { globalThis.carelessPort = server.address().port; resolve({}) }) })
  }`,
  {
    manifest: { requires: { stock: '*' } },
    before: `
import diagnostics from 'node:diagnostics_channel'
import http2 from 'node:http2'
import v8 from 'node:v8'
import vm from 'node:vm'
const { withTimeLimit } = sdk
v8.setFlagsFromString('--expose-gc')
const gc = vm.runInNewContext('gc')`
  }
)

const shared = globalThis as unknown as {
  careless: Readonly<Record<string, () => unknown>>
  carelessPort: number
  collect(): void
  onceHeard?: number
  isUnsubscribed?: boolean
}

/** One fault, and what is told of it. The plugin is well again before. */
async function fault(make: () => unknown): Promise<Told> {
  const running = k.kernel.reconciler.entries.get('careless')
  if (running?.run === undefined) throw new Error('the plugin does not run')
  // As after a reload, which takes a second.
  running.run.uncaughtError = undefined
  running.state = { name: 'running', reason: null, since: new Date() }
  const before = await counted()
  exits = 0
  const answer = await make()
  await within(3_000, () => running.state.name === 'degraded' || exits > 0)
  // What comes of it besides.
  await new Promise(resolve => setTimeout(resolve, 50))
  const after = await counted()
  return {
    reason: running.state.reason ?? undefined,
    exits,
    uncaught: after === before ? undefined : after,
    answer
  }
}

const counted = async (): Promise<string | undefined> =>
  (await k.as.anonymous().get('/healthz')).body.checks['uncaught errors']

/** What a request of HTTP/2 got, and what another one on the same connection did. */
async function ask(path: string): Promise<unknown> {
  const client = connect(`http://127.0.0.1:${shared.carelessPort}`).on('error', () => {})
  const one = async (to: string): Promise<string> =>
    await new Promise(resolve => {
      const stream = client.request({ ':method': 'POST', ':path': to }).on('error', () => {})
      let text = ''
      stream.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      stream.on('close', () => resolve(stream.rstCode === 0 ? text : `ended with ${stream.rstCode}`))
      stream.end('body')
      setTimeout(resolve, 5_000, 'no end').unref()
    })
  const answers = await Promise.all([one('/fine'), one(path)])
  client.destroy()
  return answers
}

const listenersBefore = process.listenerCount('SIGUSR2')
const outcomes: Record<string, Told> = {}
await k.enable('careless')
for (const name of Object.keys(shared.careless))
  outcomes[`the service call ${name}`] = await fault(() => {
    shared.careless[name]?.()
  })
outcomes['a finalizer'] = await fault(() => {
  shared.collect()
})
for (const path of ['/', '/then', '/data', '/close', '/write', '/now'])
  outcomes[`http2 ${path}`] = await fault(async () => await ask(path))
outcomes['a signal'] = await fault(async () => {
  shared.onceHeard = 0
  let heard = 0
  const hear = (): void => {
    heard++
  }
  process.on('SIGUSR2', hear)
  for (let n = 1; n <= 2; n++) {
    process.kill(process.pid, 'SIGUSR2')
    await within(3_000, () => heard === n)
  }
  process.off('SIGUSR2', hear)
  return { heard, once: shared.onceHeard }
})
for (const name of ['then', 'await', 'throw'])
  outcomes[`a subscriber ${name}`] = await fault(async () =>
    k.as
      .anonymous()
      .get(`/api/version?${name}`)
      .then(
        ({ status }) => status,
        () => 'cut'
      )
  )
await k.disable('careless')
process.send?.({
  outcomes,
  left: process.listenerCount('SIGUSR2') - listenersBefore,
  isUnsubscribed: shared.isUnsubscribed
})
await k.close()
await rm(home, { recursive: true, force: true })
process.exit(0)
