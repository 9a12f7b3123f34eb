import type { Health, Log } from 'busbar/sdk'
import { test } from 'tap'
import type { Listener } from '../../core/database/listener.js'
import { ChoiceSignal } from '../../core/plugins/choice-signal.js'
import { healthRound } from '../../core/plugins/health-round.js'
import type { Loaded, PluginEntry, PluginStateName } from '../../core/plugins/plugin-entry.js'
import { isEssential, isUp, isWatched, manifestOf, setState } from '../../core/plugins/plugin-entry.js'
import { planOf, schemaOf } from '../../core/plugins/plugin-schema.js'
import type { PluginChoice } from '../../core/plugins/plugin-store.js'
import { testClock } from '../../sdk/testing/test-clock.js'

const entryOf = (fields: Partial<PluginEntry> = {}): PluginEntry => ({
  id: 'my-notes',
  discovered: { builtIn: false } as PluginEntry['discovered'],
  state: { name: 'running', reason: null, since: new Date(0) },
  loaded: undefined,
  run: undefined,
  failures: 0,
  ...fields
})

/** One process of an installation: what it says goes to all, itself included. */
function processes() {
  const heard: ((message: string) => void)[] = []
  const reconnects: (() => void)[] = []
  const said: string[] = []
  const listener = {
    signal: async (topic: string, message: string) => {
      said.push(topic)
      for (const hear of heard) hear(message)
    },
    onSignal: (_topic: string, hear: (message: string) => void) => {
      heard.push(hear)
      return () => void heard.splice(heard.indexOf(hear), 1)
    },
    onReconnect: (run: () => void) => {
      reconnects.push(run)
      return () => {}
    }
  } as unknown as Listener
  const errors: string[] = []
  const log = { error: (_fields: unknown, message: string) => errors.push(message) } as unknown as Log
  const start = (fail = false) => {
    const refreshed: string[] = []
    const signal = new ChoiceSignal(listener, log)
    const stop = signal.follow({
      refresh: async reloaded => {
        refreshed.push(reloaded)
        if (fail) throw new Error('down')
      }
    })
    return { signal, refreshed, stop }
  }
  return { start, reconnects, errors, said }
}

test('a change of the plugins is followed by the other processes, and not by the one that made it', async t => {
  const { start, said } = processes()
  const [one, two] = [start(), start()]
  await one.signal.announce('')
  await one.signal.announce('notes')
  t.same(one.refreshed, [])
  t.same(two.refreshed, ['', 'notes'])
  t.same(said, ['plugins', 'plugins'])
  two.stop()
  await one.signal.announce('')
  t.equal(two.refreshed.length, 2)
})

test('after a lost connection the choices are read again, and a failure of that is logged', async t => {
  const { start, reconnects, errors } = processes()
  const { refreshed } = start(true)
  for (const run of reconnects) run()
  t.same(refreshed, [''])
  await new Promise(resolve => setImmediate(resolve))
  t.same(errors, ['following a change of the plugins failed'])
})

test('the state of a plugin follows its health, unless something else has happened meanwhile', async t => {
  const clock = testClock(5000)
  const ask = async (
    health: Health,
    {
      state = 'running',
      uncaughtError,
      during
    }: { state?: PluginStateName; uncaughtError?: string; during?: (entry: PluginEntry) => void } = {}
  ) => {
    const entry = entryOf({ state: { name: state, reason: null, since: new Date(0) } })
    let asked = 0
    entry.run = {
      uncaughtError,
      options: { definition: { health: () => health } },
      health: async () => {
        asked++
        during?.(entry)
        return health
      }
    } as unknown as PluginEntry['run']
    await healthRound([entry], clock)
    return { name: entry.state.name, reason: entry.state.reason, asked, since: entry.state.since.getTime() }
  }
  const ok: Health = { status: 'ok' }
  const ill: Health = { status: 'degraded', reason: 'no disk' }
  t.same(await ask(ok), { name: 'running', reason: null, asked: 1, since: 0 })
  t.same(await ask(ill), { name: 'degraded', reason: 'no disk', asked: 1, since: 5000 })
  t.same(await ask(ok, { state: 'degraded' }), { name: 'running', reason: null, asked: 1, since: 5000 })
  t.match(await ask(ok, { uncaughtError: 'an error' }), { name: 'degraded', reason: 'an error' })
  t.match(await ask(ill, { uncaughtError: 'an error' }), { name: 'degraded', reason: 'no disk' })
  t.match(await ask(ill, { state: 'stopping' }), { name: 'stopping', asked: 0 })
  const stopping = (entry: PluginEntry) => setState(entry, 'stopping', null, clock.now())
  t.match(await ask(ill, { during: stopping }), { name: 'stopping', asked: 1 })
  const replaced = (entry: PluginEntry) => {
    entry.run = undefined
  }
  t.match(await ask(ill, { during: replaced }), { name: 'running', asked: 1 })
})

test('a plugin without a health check, or without a run, is not asked', async t => {
  const clock = testClock()
  const silent = entryOf({
    run: { options: { definition: {} }, health: async () => t.fail('asked') } as unknown as PluginEntry['run']
  })
  await healthRound([silent, entryOf()], clock)
  t.equal(silent.state.name, 'running')
})

test('a state begins when it becomes another, and its reason has a length', t => {
  const entry = entryOf({ state: { name: 'failed', reason: 'a', since: new Date(1) } })
  setState(entry, 'failed', 'a', new Date(2))
  t.equal(entry.state.since.getTime(), 1)
  setState(entry, 'failed', 'b', new Date(3))
  t.same(entry.state, { name: 'failed', reason: 'b', since: new Date(3) })
  setState(entry, 'stopped', 'b', new Date(4))
  t.equal(entry.state.since.getTime(), 4)
  setState(entry, 'failed', 'x'.repeat(2001), new Date(5))
  t.equal(entry.state.reason?.length, 2000)
  setState(entry, 'failed', 'x'.repeat(2002), new Date(6))
  t.equal(entry.state.since.getTime(), 5, 'it is the same as far as it is kept')
  t.end()
})

test('what is said of a plugin is that of the version that runs, or else of what lies in the folder', t => {
  const manifest = { requires: { a: '1' }, optional: { b: '1' }, essential: true }
  const discovered = { builtIn: true, manifest } as unknown as PluginEntry['discovered']
  t.equal(isEssential(entryOf({ discovered })), true)
  t.equal(isEssential(entryOf({ discovered: { ...discovered, builtIn: false } })), false)
  t.equal(isEssential(entryOf()), false)
  t.equal(isEssential(entryOf({ discovered: { builtIn: true } as PluginEntry['discovered'] })), false)
  const run = { options: { manifest: { requires: {}, optional: {} } } } as unknown as PluginEntry['run']
  t.equal(manifestOf(entryOf({ discovered, run })), run?.options.manifest)
  t.equal(isWatched(entryOf({ run })), true)
  t.equal(isWatched(entryOf({ run, discovered })), false)
  t.equal(isWatched(entryOf()), false)
  for (const name of ['running', 'degraded'] as const)
    t.equal(isUp({ name, reason: null, since: new Date() }), true)
  for (const name of ['starting', 'stopping', 'retrying'] as const)
    t.equal(isUp({ name, reason: null, since: new Date() }), false)
  t.end()
})

test('the schema of a third-party plugin has a prefix, and its migrations need a grant twice', t => {
  t.equal(schemaOf('my-own-notes', true), 'my_own_notes')
  t.equal(schemaOf('my-own-notes', false), 'x_my_own_notes')
  const loaded = (grants: string[], migrations: unknown[] | undefined = [{}]) =>
    ({ manifest: { grants }, definition: { migrations } }) as unknown as Loaded
  const choice = (grants: string[]) => ({ grants }) as unknown as PluginChoice
  t.same(planOf(entryOf(), undefined, undefined), [])
  t.same(planOf(entryOf(), loaded(['database'], []), choice(['database'])), [])
  const refusal = (grants: string[], consented: PluginChoice | undefined) =>
    planOf(entryOf(), loaded(grants), consented)[0]?.refusal
  t.equal(refusal(['database'], choice(['database'])), undefined)
  t.match(refusal([], choice(['database'])), /add "database" to "grants"/)
  t.match(refusal(['database'], choice(['jobs'])), /the database is not granted to it yet/)
  t.match(refusal(['database'], undefined), /not granted to it/)
  const builtIn = entryOf({ discovered: { builtIn: true } as PluginEntry['discovered'] })
  const none = { manifest: { grants: [] }, definition: {} } as unknown as Loaded
  t.same(planOf(builtIn, none, undefined), [], 'a plugin without migrations')
  t.same(planOf(builtIn, loaded([], [1]), undefined), [
    { plugin: 'my-notes', schema: 'my_notes', migrations: [1], isThirdParty: false, refusal: undefined }
  ])
  t.match(planOf(builtIn, loaded([]), undefined), [
    { plugin: 'my-notes', schema: 'my_notes', isThirdParty: false, refusal: undefined }
  ])
  t.match(planOf(entryOf(), loaded([]), undefined), [{ schema: 'x_my_notes', isThirdParty: true }])
  t.end()
})
