import { type Contributions, Problem } from 'busbar/sdk'
import { type Test, test } from 'tap'
import type { SwitchProof, TrafficRouter } from '../api.js'
import { DeployFailure } from '../rollout/deploy-failure.js'
import { type FoundRouter, Traffic, together } from '../traffic/traffic.js'

const proof: SwitchProof = { served: 1, failed: 0, longestGapMs: 10, drainMs: 20, cut: 0 }
const target = { deploymentId: 'd', containerId: 'c', host: '10.0.0.1', port: 80 }
const good: TrafficRouter = {
  prepare: async () => null,
  switchTo: async () => ({ drain: async () => proof }),
  revert: async () => ({ drain: async () => proof })
}
const found = (key: string, value: TrafficRouter): FoundRouter => ({ key, plugin: `plugin-${key}`, value })

/** Routers that come and go: `set` changes what is there now. */
function trafficOf(initial: Readonly<Record<string, TrafficRouter>>) {
  const now = new Map(Object.entries(initial))
  const contributions: Contributions<TrafficRouter> = {
    get: key => now.get(key),
    keys: () => [...now.keys()],
    entries: () => [...now].map(([key, value]) => found(key, value))
  }
  const warnings: object[] = []
  const log = { warn: (line: object) => warnings.push(line) } as never
  return { now, warnings, traffic: new Traffic({ routers: contributions, log, limitMs: 20 }) }
}

test('a router whose plugin is off is passed over in each phase', async t => {
  const { traffic, warnings } = trafficOf({})
  const gone = found('a', good)
  t.same(await traffic.prepare([gone], 'x'), [])
  t.equal(await traffic.switchTo(gone, 'x', target), undefined)
  const { drain, fault } = await traffic.revert([gone], 'x', target)
  t.equal(fault, undefined)
  t.equal(await drain(0), undefined)
  t.same(warnings, [], 'nothing is missing')
})

test('the answers of `prepare` are warnings where they are texts, and each router is asked', async t => {
  const asked: string[] = []
  const router = (key: string, answer: unknown): FoundRouter['value'] => ({
    ...good,
    prepare: async id => {
      asked.push(`${key} ${id}`)
      return answer as string | null
    }
  })
  const { traffic } = trafficOf({
    a: router('a', null),
    b: router('b', 'it has no domain'),
    c: router('c', undefined),
    d: router('d', 'no certificate')
  })
  t.same(await traffic.prepare(traffic.routers(), 'x'), ['it has no domain', 'no certificate'])
  t.same(asked, ['a x', 'b x', 'c x', 'd x'])
})

test('a router that throws is named in each phase, and what it threw is kept', async t => {
  const broken = async (): Promise<never> => {
    throw new Error('stuck')
  }
  const { traffic } = trafficOf({ a: { prepare: broken, switchTo: broken, revert: broken } })
  const [router] = traffic.routers()
  if (router === undefined) throw new Error('no router')
  const told = { message: 'the traffic router of the plugin "plugin-a": stuck', cause: { message: 'stuck' } }
  await t.rejects(traffic.prepare([router], 'x'), told)
  await t.rejects(traffic.switchTo(router, 'x', target), told)
  t.match((await traffic.revert([router], 'x', target)).fault, told)
})

test('a problem is for the user, anything else a fault of the plugin, which is not named twice', async t => {
  const thrown = async (error: unknown): Promise<unknown> => {
    const { traffic } = trafficOf({ a: { ...good, switchTo: async () => await Promise.reject(error) } })
    return await traffic.switchTo(found('a', good), 'x', target).catch((caught: unknown) => caught)
  }
  const ofUser = await thrown(new Problem(409, 'E_X', 'the port is taken'))
  t.ok(ofUser instanceof DeployFailure)
  t.match(ofUser, { message: 'the traffic router of the plugin "plugin-a": the port is taken' })
  const other = await thrown('a text')
  t.notOk(other instanceof DeployFailure)
  t.match(other, { message: 'the traffic router of the plugin "plugin-a": a text', cause: 'a text' })
  t.match(await thrown(new Error('the traffic router of the plugin "plugin-a" is full')), {
    message: /^the traffic router of the plugin "plugin-a" is full$/
  })
})

/** A router that is taken away, or replaced, while it is called. */
async function duringCall(t: Test, after: TrafficRouter | undefined, isHanging: boolean) {
  const { now, traffic } = trafficOf({})
  const leaving = async (): Promise<never> => {
    if (after === undefined) now.delete('a')
    else now.set('a', after)
    if (isHanging) return await new Promise<never>(() => {})
    throw new Error('stopped')
  }
  const one: TrafficRouter = { prepare: leaving, switchTo: leaving, revert: leaving }
  const begin = (): void => void now.set('a', one)
  begin()
  const prepared = await traffic.prepare([found('a', one)], 'x')
  begin()
  const switched = await traffic.switchTo(found('a', one), 'x', target)
  begin()
  const reverted = await traffic.revert([found('a', one)], 'x', null)
  t.equal(reverted.fault, undefined)
  return { prepared, switched: await switched?.(0), reverted: await reverted.drain(0) }
}

test('a router that is stopped while it is called has not failed, and its successor is asked instead', async t => {
  for (const isHanging of [false, true]) {
    t.same(await duringCall(t, undefined, isHanging), {
      prepared: [],
      switched: undefined,
      reverted: undefined
    })
    t.same(await duringCall(t, { ...good, prepare: async () => 'the new one' }, isHanging), {
      prepared: ['the new one'],
      switched: proof,
      reverted: proof
    })
  }
})

test('routers are reverted from the last to the first, with the target, and one failure is told as it is', async t => {
  const asked: unknown[] = []
  const router = (key: string, fault?: Error): TrafficRouter => ({
    ...good,
    revert: async (id, to) => {
      asked.push([key, id, to])
      if (fault !== undefined) throw fault
      return null
    }
  })
  const { traffic } = trafficOf({ a: router('a'), b: router('b', new Error('stuck')), c: router('c') })
  const { fault } = await traffic.revert(traffic.routers(), 'x', target)
  t.same(asked, [
    ['c', 'x', target],
    ['b', 'x', target],
    ['a', 'x', target]
  ])
  t.notOk(fault instanceof AggregateError)
  t.match(fault, { message: 'the traffic router of the plugin "plugin-b": stuck' })
  t.equal((await traffic.revert([], 'x', target)).fault, undefined)
})

test('drains get their time at once, and those that tell nothing leave the proof to the others', async t => {
  const given: number[] = []
  const drain = (told: SwitchProof | undefined) => async (ms: number) => {
    given.push(ms)
    return told
  }
  t.same(await together([drain(undefined), drain(proof), drain(proof)])(77), { ...proof, served: 2 })
  t.same(given, [77, 77, 77])
  t.equal(await together([drain(undefined)])(1), undefined)
})
