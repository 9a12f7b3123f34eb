/** A process of its own for `hostile.test.ts`: a platform whose third-party plugins throw what nobody can read. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel } from 'busbar/sdk/testing'
import { catchUncaughtErrors } from '../../core/frames/uncaught-errors.js'
import { within, writePlugin } from './third-party-kit.js'

const uncaughtErrors = catchUncaughtErrors(error => {
  console.error(error)
  process.exit(1)
})

const thrown: Readonly<Record<string, string>> = {
  nothing: 'null',
  'a proxy that throws':
    '(() => { const no = () => { throw null }; return new Proxy(new Error(), { get: no, has: no, getPrototypeOf: no }) })()',
  'a message that throws':
    "Object.defineProperty(new Error(), 'message', { get () { throw new Error('no') } })",
  'a stack that throws': "Object.defineProperty(new Error(), 'stack', { get () { throw new Error('no') } })",
  'a member that throws':
    "Object.defineProperty(new Error('m'), 'more', { enumerable: true, get () { throw new Error('no') } })",
  'a message that is a symbol': "Object.assign(new Error(), { message: Symbol('x') })",
  'a message that is an object': 'Object.assign(new Error(), { message: {} })',
  'an object that cannot be shown':
    "({ [Symbol.for('nodejs.util.inspect.custom')] () { throw new Error('no') } })",
  'a problem with its arguments mixed up': "new Problem('E_X', 404, 'mixed up')",
  'a problem with circular details':
    "(() => { const d = {}; d.d = d; return new Problem(409, 'E_X', 'c', d) })()",
  'a problem with headers that are none': "new Problem(409, 'E_X', 'h', {}, { 'bad header': '\\n' })",
  'a code that throws': "Object.defineProperty(new Error('m'), 'code', { get () { throw new Error('no') } })",
  'a problem that throws':
    "({ [Symbol.for('busbar.problem')]: true, get status () { throw new Error('no') } })"
}
const names = Object.keys(thrown)

const home = await mkdtemp(join(tmpdir(), 'busbar-hostile-'))
await writePlugin(
  home,
  'hostile',
  `
  routes (route) {
    for (const [at, make] of thrown.entries()) {
      const on = (name, handler, more) => route({ method: 'GET', url: '/api/x/hostile/' + name + '-' + at, summary: 's', access: open, handler, ...more })
      on('now', () => { throw make() })
      on('later', async () => { throw make() })
      on('audited', async () => { throw make() }, { audit: { action: 'a', resource: 'r' } })
      on('before', () => ({}), { precondition: async () => { throw make() } })
      on('behind', () => { setTimeout(() => { throw make() }, 1); Promise.reject(make()); return {} })
    }
    route({ method: 'GET', url: '/api/x/hostile/thenable', summary: 's', access: open, handler: () => ({ then () { throw null } }) })
  },
  contributes (contribute) {
    for (const [at, make] of thrown.entries())
      contribute(extensionPoint('projects.teardown'), 'hostile-' + at, {
        teardown: async () => {
          if (globalThis.healthAt !== at) return
          setTimeout(() => { throw make() }, 1)
          throw make()
        }
      })
  },
  health: () => { throw thrown[globalThis.healthAt ?? 0]() }
`,
  {
    before: `const thrown = [${Object.values(thrown)
      .map(text => `() => ${text}`)
      .join(',\n')}]`
  }
)
await writePlugin(
  home,
  'leaving',
  "provides () { leave('provides') }, contributes () { leave('contributes') }, routes () { leave('routes') }",
  {
    before: `
const told = new Set()
const leave = name => { if (!told.has(name)) { told.add(name); setTimeout(() => { throw new Error('left by ' + name) }, 500) } }
leave('the module')`
  }
)
await writePlugin(
  home,
  'finalizing',
  'start () { for (let at = 0; at < 3; at++) registry.register({}, at); setTimeout(gc, 500); return {} }',
  {
    before: `
import v8 from 'node:v8'
import vm from 'node:vm'
v8.setFlagsFromString('--expose-gc')
const gc = vm.runInNewContext('gc')
const registry = new FinalizationRegistry(() => { throw new Error('a finalizer') })`
  }
)

const lines: string[] = []
const first = await createTestKernel({ thirdParty: home, onLog: line => lines.push(line) })
uncaughtErrors.reportTo(first.kernel)
const admin = await first.as.session()
const outcomes: Record<string, unknown> = {}
const answer = async (path: string): Promise<unknown> => {
  const late = new Promise(resolve => setTimeout(resolve, 5_000, 'no answer'))
  return await Promise.race([admin.get(path).then(({ status }) => status, String), late])
}

await admin.post('/api/plugins/hostile/enable')
for (const [at, name] of names.entries()) {
  Object.assign(globalThis, { healthAt: at })
  const found: unknown[] = []
  for (const kind of ['now', 'later', 'audited', 'before'])
    found.push(await answer(`/api/x/hostile/${kind}-${at}`))
  const { id } = (await admin.post('/api/projects', { name: 'x', slug: `x${at}` })).body
  await admin.delete(`/api/projects/${id}`)
  const isHeld = (line: string): boolean => line.includes(id) && line.includes('is not removed yet')
  found.push(await within(10_000, () => lines.some(isHeld)))
  await answer(`/api/x/hostile/behind-${at}`)
  await new Promise(resolve => setTimeout(resolve, 30))
  const { status, body } = await admin.get('/api/plugins')
  const shown = status === 200 && body.items.find((item: { id: string }) => item.id === 'hostile')
  outcomes[name] = { found, state: shown.state, reason: typeof shown.reason }
}
outcomes['a thenable that throws'] = await answer('/api/x/hostile/thenable')

// Of nobody's request: as at boot, no frame is around them.
for (const id of ['leaving', 'finalizing']) {
  await first.enable(id)
  const entry = first.kernel.reconciler.entries.get(id)
  outcomes[id] = await within(10_000, () => entry?.state.name === 'degraded')
}
outcomes.left = ['the module', 'provides', 'contributes', 'routes'].filter(name =>
  lines.some(line => line.includes('"plugin":"leaving"') && line.includes(`left by ${name}`))
)
process.send?.(outcomes)
await first.close()
await rm(home, { recursive: true, force: true })
process.exit(0)
