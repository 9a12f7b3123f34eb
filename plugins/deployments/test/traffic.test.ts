import type { Contributions } from 'busbar/sdk'
import { test } from 'tap'
import type { SwitchProof, TrafficRouter } from '../api.js'
import { proofOf } from '../traffic/switch-proof.js'
import { Traffic } from '../traffic/traffic.js'

const proof: SwitchProof = { served: 1, failed: 0, longestGapMs: 10, drainMs: 20, cut: 0 }
const target = { deploymentId: 'd', containerId: 'c', host: '10.0.0.1', port: 80 }
const forever = async <T>(): Promise<T> => await new Promise<T>(() => {})

const good: TrafficRouter = {
  prepare: async () => null,
  switchTo: async () => ({ drain: async () => proof }),
  revert: async () => ({ drain: async () => proof })
}

/** What these routers are together; `logged` has the warnings. */
function trafficOf(routers: Record<string, TrafficRouter>) {
  const logged: object[] = []
  const contributions: Contributions<TrafficRouter> = {
    get: key => routers[key],
    keys: () => Object.keys(routers),
    entries: () => Object.entries(routers).map(([key, value]) => ({ key, plugin: `plugin-${key}`, value }))
  }
  const log = { warn: (line: object) => logged.push(line) } as never
  return { traffic: new Traffic({ routers: contributions, log, limitMs: 20 }), logged }
}
const found = (key: string, value = good) => ({ key, plugin: `plugin-${key}`, value })

test('routers are in the order of their keys, whoever came first', t => {
  t.same(trafficOf({ b: good, a: good }).traffic.routers(), [found('a'), found('b')])
  t.same(trafficOf({}).traffic.routers(), [])
  t.end()
})

test('routers that came, went or were reloaded are noticed', t => {
  const since = trafficOf({ a: good, b: good }).traffic.routers()
  t.notOk(trafficOf({ b: good, a: good }).traffic.hasChanged(since))
  t.ok(trafficOf({ a: good, b: { ...good } }).traffic.hasChanged(since), 'reloaded')
  t.ok(trafficOf({ a: good }).traffic.hasChanged(since), 'gone')
  t.ok(trafficOf({ a: good, b: good, c: good }).traffic.hasChanged(since), 'new')
  t.end()
})

test('a router that never answers is given up and named', async t => {
  const { traffic } = trafficOf({ a: { prepare: forever, switchTo: forever, revert: forever }, b: good })
  const routers = traffic.routers()
  await t.rejects(traffic.prepare(routers, 'x'), {
    message: /the traffic router of the plugin "plugin-a" \(prepare\) did not answer within/
  })
  await t.rejects(traffic.switchTo(found('a'), 'x', target), {
    message: /the traffic router of the plugin "plugin-a" \(switch\) did not answer within/
  })
  const { drain, fault } = await traffic.revert(routers, 'x', target)
  t.match(fault, { message: /the traffic router of the plugin "plugin-a" \(revert\) did not answer within/ })
  t.same(await drain(0), proof, 'the other one has been reverted, and is drained')
})

test('what two routers throw while they are reverted is told of both', async t => {
  const stuck = { ...good, revert: async () => await Promise.reject(new Error('stuck')) }
  const { traffic } = trafficOf({ a: stuck, b: stuck })
  const { drain, fault } = await traffic.revert(traffic.routers(), 'x', null)
  t.match(fault, { message: /"plugin-b": stuck; .*"plugin-a": stuck/ })
  t.equal(await drain(0), undefined)
})

test('a drain that never ends, throws or tells nonsense leaves the others their proof', async t => {
  const drains: Record<string, () => Promise<unknown>> = {
    hangs: forever,
    throws: async () => await Promise.reject(new Error('lost')),
    lies: async () => null,
    tells: async () => proof
  }
  const routers = Object.fromEntries(
    Object.entries(drains).map(([key, drain]) => [
      key,
      { ...good, switchTo: async () => ({ drain }) as never }
    ])
  )
  const { traffic, logged } = trafficOf(routers)
  const told = await Promise.all(
    traffic.routers().map(async router => await (await traffic.switchTo(router, 'x', target))?.(0))
  )
  t.same(told, [undefined, undefined, proof, undefined])
  t.same(logged.length, 3)
})

test('a router without an address for an application has nothing to drain', async t => {
  const { traffic, logged } = trafficOf({ a: { ...good, switchTo: async () => null } })
  const drain = await traffic.switchTo(found('a'), 'x', target)
  t.ok(drain)
  t.equal(await drain?.(0), undefined)
  t.same(logged, [])
})

test('requests of several routers add up, gaps and drains do not', t => {
  t.equal(proofOf([]), undefined)
  t.same(proofOf([proof]), proof)
  t.same(
    proofOf([
      { served: 5, failed: 1, longestGapMs: 30.4, drainMs: 10, cut: 1 },
      { served: 7, failed: 2, longestGapMs: 20, drainMs: 40, cut: 0 }
    ]),
    { served: 12, failed: 3, longestGapMs: 30, drainMs: 40, cut: 1 }
  )
  t.same(
    proofOf([{ served: Number.NaN, failed: -1, longestGapMs: Infinity, drainMs: 1e12, cut: 2 ** 31 }]),
    { served: 0, failed: 0, longestGapMs: 2 ** 31 - 1, drainMs: 2 ** 31 - 1, cut: 2 ** 31 - 1 },
    'what no column holds is not stored'
  )
  t.end()
})
