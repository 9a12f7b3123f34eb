import { channel, tracingChannel } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { installation, routeText } from './third-party-kit.js'

const shared = globalThis as { ticks?: number; signals?: number; refs?: WeakRef<object>[] }

test('what a third-party plugin repeats and listens to ends with its run', async t => {
  Object.assign(shared, { ticks: 0, signals: 0 })
  const { write, change } = await installation(t)
  await write(
    'leaving',
    `needs: { clock: kernel.clock, bus: kernel.bus }, start ({ use }) {
      use.clock.every(5, () => { globalThis.ticks++ })
      use.bus.onSignal('go', () => { globalThis.signals++ })
      return {}
    }`
  )
  t.match(await change('leaving', 'enable'), { status: 200 })
  t.ok(await until(() => (shared.ticks ?? 0) > 1, 'it repeats'))
  t.match(await change('leaving', 'disable'), { status: 200 })
  const then = shared.ticks
  await sleep(200)
  t.equal(shared.ticks, then, 'nothing is repeated')
  await write(
    'leaving',
    "needs: { bus: kernel.bus }, start: async ({ use }) => { await use.bus.signal('go', ''); return {} }"
  )
  t.match(await change('leaving', 'enable'), { status: 200 })
  t.equal(shared.signals, 0, 'nothing is heard')
})

/** The listeners and subscribers that are there, by where: each of these plugins has names of its own. */
const present = () => {
  const listeners = process
    .eventNames()
    .map(String)
    .filter(name => name.startsWith('left.'))
    .flatMap(name => Array<string>(process.listenerCount(name)).fill(name))
  const channels = ['start', 'module', 'handler'].filter(name => channel(`left.${name}`).hasSubscribers)
  const { start, asyncEnd } = tracingChannel('left.traced')
  return {
    listeners: listeners.sort(),
    channels,
    traced: [start, asyncEnd].filter(one => one.hasSubscribers).length,
    bound: channel('left.bound').hasSubscribers
  }
}
const none = { listeners: [], channels: [], traced: 0, bound: false }
const all = {
  listeners: ['left.handler', 'left.module', 'left.once', 'left.start'],
  channels: ['start', 'module', 'handler'],
  traced: 2,
  bound: true
}

test('what a third-party plugin adds to the process and to channels goes with its run', async t => {
  const { write, change, admin } = await installation(t)
  const module = {
    before: `import diagnostics from 'node:diagnostics_channel'
    import { AsyncLocalStorage } from 'node:async_hooks'
    const add = name => { process.on('left.' + name, () => {}); diagnostics.subscribe('left.' + name, () => {}) }
    add('module')`
  }
  const members = `
    start () {
      add('start')
      process.once('left.once', () => {})
      const removed = () => {}
      process.on('left.removed', removed); process.off('left.removed', removed)
      diagnostics.subscribe('left.removed', removed); diagnostics.unsubscribe('left.removed', removed)
      diagnostics.tracingChannel('left.traced').subscribe({ start () {}, asyncEnd () {} })
      diagnostics.channel('left.bound').bindStore(new AsyncLocalStorage())
      return {}
    },
    routes (route) { ${routeText('leaving', 'add', "() => { add('handler'); return {} }")} }`
  await write('leaving', members, module)
  const begin = async (what: 'enable' | 'reload') => {
    t.match(await change('leaving', what), { status: 200 })
    t.equal((await admin.get('/api/x/leaving/add')).status, 200)
  }
  await begin('enable')
  t.same(present(), all)

  await begin('reload')
  t.same(present(), all, 'the same code, loaded again: what the module has added is there once')
  await write('leaving', `${members},\n// another version\n`, module)
  await begin('reload')
  t.same(present(), all, 'other code')

  await write('leaving', `start () { add('start'); throw new Error('not today') }`, module)
  t.match(await change('leaving', 'reload'), { status: 409 })
  t.same(present(), all, 'a version that does not start')
  await write('leaving', members, module)
  await begin('reload')
  t.same(present(), all)

  t.match(await change('leaving', 'disable'), { status: 200 })
  t.same(present(), none, 'it is off')
  await begin('enable')
  t.same(present(), all, 'it is on again, its code is not evaluated a second time')
  process.emit('left.once' as never)
  t.equal(process.listenerCount('left.once'), 0)
  t.match(await change('leaving', 'disable'), { status: 200 })
  t.same(present(), none)
})

test('what a run that has ended adds late is not added, and what others have added stays', async t => {
  const { write, change, admin } = await installation(t)
  const late = "AsyncResource.bind(() => { process.on('left.late', () => {}) })"
  await write('other', `start () { process.on('left.other', () => {}); return {} }`)
  await write(
    'leaving',
    `start () { globalThis.lateOfStart = ${late}; return {} },
    routes (route) { ${routeText('leaving', 'add', `() => { globalThis.lateOfHandler = ${late}; return {} }`)} }`,
    { before: "import { AsyncResource } from 'node:async_hooks'" }
  )
  t.match(await change('other', 'enable'), { status: 200 })
  t.match(await change('leaving', 'enable'), { status: 200 })
  await admin.get('/api/x/leaving/add')
  t.match(await change('leaving', 'disable'), { status: 200 })
  const { lateOfStart, lateOfHandler } = globalThis as {
    lateOfStart?: () => void
    lateOfHandler?: () => void
  }
  lateOfStart?.()
  lateOfHandler?.()
  t.equal(process.listenerCount('left.late'), 0)
  t.equal(process.listenerCount('left.other'), 1)
})

test('a plugin that replaces the global Promise changes nothing for others', async t => {
  const { k, write, change, admin } = await installation(t)
  const { Promise: own } = globalThis
  t.teardown(() => Object.assign(globalThis, { Promise: own }))
  const shopped = "service('shop.orders')"
  await write(
    'shop',
    `needs: { db: kernel.database }, start: ({ use }) => ({ db: use.db }),
    provides (provide, self) { provide(${shopped}, {
      fails: async () => { throw null },
      sql: async () => await self.db.sql('select nonsense')
    }) },
    routes (route) {
      route({ method: 'POST', url: '/api/x/shop/orders', summary: 's', access: open, audit: { action: 'order', resource: 'order' }, schema: { body: object({ a: Type.String() }) },
        handler: async ({ body }) => await new Promise(resolve => setTimeout(() => resolve(body), 1)) });
      ${routeText('shop', 'sql', "async (_, { db }) => (await db.sql('select 1 as one'))[0]")}
    }`
  )
  await write(
    'patching',
    `needs: { orders: ${shopped} }, start: ({ use }) => use,
    routes (route) {
      ${routeText('patching', 'patch', '() => { globalThis.Promise = class Other extends Promise {}; return {} }')}
      ${routeText('patching', 'fails', '(_, { orders }) => orders.fails().then(undefined, error => ({ message: error.message }))')}
    }`,
    { manifest: { requires: { shop: '^1.0.0' } } }
  )
  t.match(await change('shop', 'enable'), { status: 200 })
  t.match(await change('patching', 'enable'), { status: 200 })
  t.equal((await admin.get('/api/x/patching/patch')).status, 200)
  t.not(globalThis.Promise, own, 'it is replaced')
  for (let round = 0; round < 2; round++) {
    t.match(await admin.post('/api/x/shop/orders', { a: 'b' }), { status: 200, body: { a: 'b' } })
    t.match(await admin.get('/api/x/shop/sql'), { status: 200, body: { one: 1 } })
    t.match(await admin.post('/api/projects', { name: 'A', slug: `a-${round}` }), { status: 201 })
    t.equal((await admin.get('/api/projects')).status, 200)
    t.match(await admin.get('/api/x/patching/fails'), {
      status: 200,
      body: { message: 'something that is not an error was thrown by the plugin "shop": null' }
    })
    t.equal((await k.as.anonymous().get('/healthz')).body.healthy, true)
  }
  t.match(await change('shop', 'reload'), { status: 200 })
})

test('a rate limit is described by what it is', async t => {
  const { k, write, change } = await installation(t)
  await write(
    'noted',
    `routes (route) { ${routeText('noted', 'a', '() => ({})', 'limit: { max: 1, windowSeconds: 1, note: 1n }')} }`
  )
  t.match(await change('noted', 'enable'), { status: 200 })
  const { status, body } = await k.as.anonymous().get('/api/openapi.json')
  t.equal(status, 200)
  t.same(body.paths['/api/x/noted/a'].get['x-rate-limit'], { max: 1, windowSeconds: 1 })
})

test('what a run has added to channels is not kept in memory once it has ended', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const refs: WeakRef<object>[] = []
  Object.assign(shared, { refs })
  const { write, change } = await installation(t)
  await write(
    'leaking',
    `start ({ onStop }) {
      const added = { subscriber () {}, store: new AsyncLocalStorage() }
      const add = () => {
        diagnostics.subscribe('leaking.one', added.subscriber)
        diagnostics.channel('leaking.one').bindStore(added.store)
      }
      add()
      // what comes late is of the run that has ended
      onStop(() => { setImmediate(() => { setTimeout(add, 50) }) })
      globalThis.refs.push(new WeakRef(added.subscriber), new WeakRef(added.store))
      return {}
    }`,
    {
      before: `import diagnostics from 'node:diagnostics_channel'
      import { AsyncLocalStorage } from 'node:async_hooks'`
    }
  )
  t.match(await change('leaking', 'enable'), { status: 200 })
  for (let times = 0; times < 5; times++) t.match(await change('leaking', 'reload'), { status: 200 })
  t.match(await change('leaking', 'disable'), { status: 200 })
  t.equal(refs.length, 12)
  // One may be on the stack of whoever looked last.
  const left = await until(() => {
    collect()
    const count = refs.filter(ref => ref.deref() !== undefined).length
    return count <= 2 ? { count } : undefined
  }, 'what the runs have added is collected')
  t.ok(left.count <= 2)
})
