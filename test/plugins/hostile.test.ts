import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { installation } from './third-party-kit.js'

test('whatever a third-party plugin throws, and wherever, is answered and told in its name, and ends no process', async t => {
  const child = fork(fileURLToPath(new URL('hostile-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(180_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const exited = once(child, 'exit')
  const [outcomes] = (await Promise.race([once(child, 'message'), exited])) as [
    Readonly<Record<string, unknown>> | number | null
  ]
  if (typeof outcomes !== 'object' || outcomes === null)
    return t.fail(`the process ended: ${String(outcomes)}`)
  const { leaving, finalizing, 'a thenable that throws': thenable, left, ...thrown } = outcomes
  for (const [name, outcome] of Object.entries(thrown))
    t.same(outcome, { found: [500, 500, 500, 500, true], state: 'degraded', reason: 'string' }, name)
  t.equal(thenable, 500)
  t.equal(leaving, true, 'what is left behind while a plugin is loaded has an owner')
  t.same(left, ['the module', 'provides', 'contributes', 'routes'])
  t.equal(finalizing, true, 'a finalizer has an owner')
  t.equal((await exited)[0], 0)
})

test('a health check that answers nonsense makes its plugin degraded, with the answer, and stays out of the others', async t => {
  const { write, change, admin } = await installation(t)
  await write('unwell', 'health: () => answers[globalThis.unwellAt ?? 0]', {
    before: `const answers = ['ok', 5, { status: 'degraded' }, { status: 'degraded', reason: {} }, { status: 'degraded', reason: Symbol('x') }, { get status () { throw null } }]`
  })
  t.match(await change('unwell', 'enable'), { status: 200 })
  for (let at = 0; at < 6; at++) {
    Object.assign(globalThis, { unwellAt: at })
    t.equal((await admin.get('/api/plugins')).status, 200)
    t.match((await admin.get('/api/plugins/unwell')).body, {
      state: 'degraded',
      reason: /answered|was thrown/
    })
  }
})

test('what an earlier run leaves behind marks no later one, and an uncaught error is still reported when a check has told something else', async t => {
  const { k, write, change, admin } = await installation(t)
  await write(
    'lasting',
    `start: ({ use }) => { globalThis.lastingUse ??= use.db; return {} },
     needs: { db: kernel.database },
     health: () => globalThis.lastingHealth ?? { status: 'ok' }`
  )
  await change('lasting', 'enable')
  await change('lasting', 'reload')
  const shared = globalThis as {
    lastingUse?: { sql(text: string): Promise<unknown> }
    lastingHealth?: object | undefined
  }
  const error: unknown = await shared.lastingUse?.sql('select 1').then(
    () => undefined,
    (error: unknown) => error
  )
  t.match(error, { message: /an earlier run of the plugin "lasting" has ended/ })
  k.kernel.reconciler.noteUncaughtError('lasting', error)
  t.match((await admin.get('/api/plugins/lasting')).body, { state: 'running', reason: null })

  k.kernel.reconciler.noteUncaughtError('lasting', new Error('boom'))
  shared.lastingHealth = { status: 'degraded', reason: 'a full disk' }
  await k.checkHealth()
  t.match((await admin.get('/api/plugins/lasting')).body, { state: 'degraded', reason: 'a full disk' })
  shared.lastingHealth = undefined
  await k.checkHealth()
  t.match((await admin.get('/api/plugins/lasting')).body, { state: 'degraded', reason: /boom/ })
})

test('an error that nobody caught stays told although the health check knows nothing of it', async t => {
  const { k, write, change, admin } = await installation(t)
  await write('forgetful', "health: () => ({ status: 'ok' })")
  await change('forgetful', 'enable')
  k.kernel.reconciler.noteUncaughtError('forgetful', new Error('boom'))
  t.match((await admin.get('/api/plugins/forgetful')).body, { state: 'degraded', reason: /boom/ })
  await change('forgetful', 'reload')
  t.match((await admin.get('/api/plugins/forgetful')).body, { state: 'running', reason: null })
})
