import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { installation, routeText } from './third-party-kit.js'

const shared = globalThis as { ticks?: number; signals?: number }

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
