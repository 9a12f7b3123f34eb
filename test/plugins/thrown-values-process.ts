/**
 * A process of its own for `thrown-values.test.ts`: a third-party plugin that throws what is no error, or an error that names
 * nobody's code, wherever Node calls it back.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel } from 'busbar/sdk/testing'
import { catchUncaughtErrors } from '../../core/frames/uncaught-errors.js'
import { within, writePlugin } from './third-party-kit.js'

/** What became of one fault. */
export interface Told {
  /** Why the plugin is degraded, when it is. */
  readonly reason: string | undefined
  /** Errors that belong to no plugin. */
  readonly uncaught: string | undefined
  /** How often the platform would have ended. */
  readonly exits: number
}

let exits = 0
const uncaughtErrors = catchUncaughtErrors(() => {
  exits++
})
const home = await mkdtemp(join(tmpdir(), 'busbar-thrown-'))
const k = await createTestKernel({ thirdParty: home })
uncaughtErrors.reportTo(k.kernel)
const admin = await k.as.session()

/** Each is the body of a function that returns before it is called back. */
const faults: Readonly<Record<string, string>> = {
  'a bigint in a microtask': 'queueMicrotask(() => { throw 1n })',
  'a text in a microtask': "queueMicrotask(() => { throw 'text' })",
  'an error of Node in a microtask': "queueMicrotask(JSON.parse.bind(undefined, '{'))",
  'a microtask of a microtask': 'queueMicrotask(() => queueMicrotask(() => { throw null }))',
  'an imported microtask':
    "import('node:timers/promises').then(() => globalThis.queueMicrotask(() => { throw 1n }))",
  'a rejected promise': 'void Promise.reject(1n)',
  'a rejection without a value': 'void Promise.reject()',
  'an async function': 'void (async () => { await null; throw 1n })()',
  'a thenable': 'void Promise.resolve({ then () { throw 1n } })',
  'an immediate': 'setImmediate(() => { throw null })',
  'a tick': 'process.nextTick(() => { throw undefined })',
  'a timer': 'setTimeout(() => { throw Symbol() }, 1)',
  'a listener':
    "const one = new EventEmitter().on('go', () => { throw 1n }); setImmediate(() => one.emit('go'))",
  'a listener that is async':
    "const one = new EventEmitter({ captureRejections: true }).on('go', async () => { throw 1n }); setImmediate(() => one.emit('go'))",
  'a listener of an event target':
    "const one = new EventTarget(); one.addEventListener('go', () => { throw 1n }); one.dispatchEvent(new Event('go'))",
  'a file': "stat('/', () => { throw 1n })",
  'a lookup': "dns.lookup('localhost', () => { throw 1n })",
  'a name that is resolved': "dns.resolve4('localhost', () => { throw 1n })",
  'a name that is not found': "dns.resolve4('nowhere.invalid', error => { if (error) throw error })",
  'a name that is resolved, imported by itself': "resolveTxt('localhost', () => { throw 1n })",
  'a resolver': "new dns.Resolver().resolve4('localhost', () => { throw 1n })",
  'a worker that ends': "new Worker('', { eval: true }).on('exit', () => { throw 1n })",
  'a worker that fails': "new Worker('throw 1n', { eval: true })",
  'a worker without memory':
    "new Worker('const a = []; for (;;) a.push(new Array(1000).fill(1))', { eval: true, resourceLimits: { maxOldGenerationSizeMb: 10 } })",
  'the output of a worker':
    "new Worker('console.log(1)', { eval: true, stdout: true }).stdout.on('data', () => { throw 1n })",
  'a finalizer':
    'const all = new FinalizationRegistry(() => { throw 1n }); globalThis.all = all; (() => { all.register({}, 1) })(); setTimeout(gc, 20)',
  'an observer of collections':
    "const one = new PerformanceObserver(() => { one.disconnect(); throw 1n }); one.observe({ entryTypes: ['gc'] }); gc()"
}

await writePlugin(
  home,
  'careless',
  `routes (route) {
    route({ method: 'POST', url: '/api/x/careless/:fault', summary: 's', access: allow.session({ project: 'none' }), audit: { action: 'fail', resource: 'fault' },
      schema: { params: { fault: Type.String() } },
      handler: ({ params }) => { faults[params.fault](); return {} } })
  }`,
  {
    before: `
import { EventEmitter } from 'node:events'
import { stat } from 'node:fs'
import dns, { resolveTxt } from 'node:dns'
import { PerformanceObserver } from 'node:perf_hooks'
import v8 from 'node:v8'
import vm from 'node:vm'
import { Worker } from 'node:worker_threads'
v8.setFlagsFromString('--expose-gc')
const gc = vm.runInNewContext('gc')
const faults = { ${Object.entries(faults)
      .map(([name, body]) => `${JSON.stringify(name)}: () => { ${body} }`)
      .join(',\n')} }`
  }
)

const counted = async (): Promise<string | undefined> =>
  (await k.as.anonymous().get('/healthz')).body.checks['uncaught errors']

const outcomes: Record<string, Told> = {}
await k.enable('careless')
for (const name of Object.keys(faults)) {
  const running = k.kernel.reconciler.entries.get('careless')
  if (running?.run === undefined) throw new Error('the plugin does not run')
  // As after a reload, which takes a second.
  running.run.uncaughtError = undefined
  running.state = { name: 'running', reason: null, since: new Date() }
  const before = await counted()
  exits = 0
  const { status } = await admin.post(`/api/x/careless/${encodeURIComponent(name)}`)
  if (status !== 200) throw new Error(`"${name}" was answered by ${status}`)
  await within(
    10_000,
    async () => running.state.name === 'degraded' || exits > 0 || (await counted()) !== before
  )
  const after = await counted()
  outcomes[name] = {
    reason: running.state.reason ?? undefined,
    exits,
    uncaught: after === before ? undefined : after
  }
}
process.send?.(outcomes)
await k.close()
await rm(home, { recursive: true, force: true })
process.exit(0)
