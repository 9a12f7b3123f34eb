/** Samples of containers, and what two of them tell. */
import type { ContainerStats } from 'busbar/api/containers'
import { Problem } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { ApplicationContainers } from '../application/application-containers.js'
import { ApplicationSamples } from '../application/application-samples.js'
import { ratesBetween } from '../application/container-usage.js'

const stats = (seconds: number, more: Partial<ContainerStats> = {}): ContainerStats => ({
  at: new Date(seconds * 1000),
  cpuSeconds: seconds / 2,
  memoryBytes: 100,
  memoryLimitBytes: 200,
  processes: 1,
  receivedBytes: seconds * 10,
  sentBytes: seconds * 20,
  readBytes: 0,
  writtenBytes: 0,
  ...more
})

test('two samples tell how fast something grows', t => {
  t.same(ratesBetween(stats(10), stats(12)), { cores: 0.5, receivedBytes: 10, sentBytes: 20 })
  t.same(
    ratesBetween(stats(10), stats(12, { receivedBytes: 0 })),
    { cores: 0.5, receivedBytes: 0, sentBytes: 20 },
    'a container that has left a network'
  )
  t.equal(ratesBetween(stats(10), stats(12, { cpuSeconds: 0 })), undefined, 'one that was started anew')
  t.equal(ratesBetween(stats(10), stats(10.4)), undefined)
  t.equal(ratesBetween(stats(10), stats(9)), undefined)
  t.end()
})

/** An engine in memory, whose containers use half a core. */
function setUp() {
  const clock = testClock()
  const calls = { list: 0, stats: [] as string[] }
  const containers = new Map<string, string>()
  const engine = {
    isOff: false,
    fault: undefined as Error | undefined,
    wait: undefined as Promise<void> | undefined,
    next: (): ContainerStats => stats(clock.now().getTime() / 1000)
  }
  const runtime = {
    list: async ({ applicationId = '', deploymentId = '' }) => {
      calls.list++
      if (engine.fault !== undefined) throw engine.fault
      const id = containers.get(`${applicationId}/${deploymentId}`)
      return id === undefined ? [] : [{ id } as never]
    },
    stats: async (id: string) => {
      calls.stats.push(id)
      await engine.wait
      if (engine.fault !== undefined) throw engine.fault
      return engine.next()
    }
  }
  const handle = { get: () => (engine.isOff ? undefined : runtime), whileAvailable: async () => {} }
  const known = new ApplicationContainers(handle)
  const samples = new ApplicationSamples({ runtime: handle, containers: known, clock })
  const app = (id: string, deploymentId = 'd', projectId = 'p') => {
    containers.set(`${id}/${deploymentId}`, `container of ${id} and ${deploymentId}`)
    return { id, projectId, deploymentId }
  }
  return { clock, calls, containers, engine, samples, app }
}

test('a container is looked for once for each deployment', async t => {
  const { samples, calls, app } = setUp()
  const first = app('a')
  for (let n = 0; n < 3; n++) t.match(await samples.sample(first), { containerId: 'container of a and d' })
  t.equal(calls.list, 1)
  t.match(await samples.sample(app('a', 'next')), { containerId: 'container of a and next' })
  t.equal(calls.list, 2)
})

test('one that is gone or does not run is no failure, and is looked for anew', async t => {
  const { samples, calls, engine, app } = setUp()
  const one = app('a')
  await samples.sample(one)
  for (const code of ['E_CONTAINER_MISSING', 'E_CONTAINER_NOT_RUNNING']) {
    engine.fault = undefined
    const before = calls.list
    const next = engine.next
    engine.next = () => {
      throw new Problem(404, code, 'gone')
    }
    t.equal(await samples.sample(one), undefined)
    engine.next = next
    t.ok(await samples.sample(one))
    t.equal(calls.list, before + 1)
  }
  t.equal(await samples.sample({ id: 'none', projectId: 'p', deploymentId: 'd' }), undefined)
})

test('an engine that is away, or off, is a failure for all who wait, and not for those who come later', async t => {
  const { samples, engine, app } = setUp()
  const one = app('a')
  engine.fault = new Problem(503, 'E_ENGINE_UNREACHABLE', 'away')
  await Promise.all(
    [1, 2].map(async () => await t.rejects(samples.sample(one), { code: 'E_ENGINE_UNREACHABLE' }))
  )
  engine.fault = undefined
  t.ok(await samples.sample(one))
  engine.isOff = true
  await t.rejects(samples.sample(one), { status: 503, code: 'E_PLUGIN_OFF' })
})

test('a sample that is being taken is shared', async t => {
  const { samples, calls, engine, app } = setUp()
  const one = app('a')
  let answer = (): void => {}
  engine.wait = new Promise(resolve => {
    answer = resolve
  })
  const all = [1, 2, 3].map(async () => await samples.sample(one))
  await until(() => calls.stats.length === 1, 'the question')
  answer()
  t.equal(new Set(await Promise.all(all)).size, 1)
  t.equal(calls.stats.length, 1)
})

test('no more than 64 are waited for at a time, of one project half as many, and all have their turn', async t => {
  const { samples, calls, engine, app } = setUp()
  let answer = (): void => {}
  engine.wait = new Promise(resolve => {
    answer = resolve
  })
  const many = Array.from({ length: 100 }, (_, at) => app(`a${at}`, 'd', 'large'))
  const others = Array.from({ length: 50 }, (_, at) => app(`b${at}`, 'd', `small ${at}`))
  const all = [...many, ...others].map(async one => await samples.sample(one))
  await until(() => calls.stats.length === 64, 'the first ones')
  t.equal(calls.stats.filter(id => id.includes('of a')).length, 32)
  answer()
  t.equal((await Promise.all(all)).length, 150)
  t.equal(calls.stats.length, 150)
})

test('what it uses now needs a second sample where there was none before', async t => {
  const { samples, clock, calls, app } = setUp()
  const one = app('a')
  const first = samples.usage(one)
  await until(() => calls.stats.length === 1, 'a sample')
  await clock.advance(1000)
  t.match(await first, { cpuPercent: 50, memoryBytes: 100, memoryLimitBytes: 200 })
  await clock.advance(2000)
  t.match(await samples.usage(one), { cpuPercent: 50, measuredAt: clock.now() })
  t.equal(calls.stats.length, 3, 'the one before is enough from then on')
})

test('a sample that is too old, or of before a restart, says nothing of now', async t => {
  const { samples, clock, calls, engine, app } = setUp()
  const one = app('a')
  await samples.sample(one)
  await clock.advance(301_000)
  const late = samples.usage(one)
  await until(() => calls.stats.length === 2, 'a sample')
  await clock.advance(1000)
  t.match(await late, { cpuPercent: 50 })
  engine.next = () => stats(clock.now().getTime() / 1000, { cpuSeconds: 0.1 })
  await clock.advance(2000)
  const anew = samples.usage(one)
  await until(() => calls.stats.length === 4, 'a sample')
  await clock.advance(1000)
  t.match(await anew, { cpuPercent: 0 })
})

test('two samples right after each other are measured from the one before both', async t => {
  const { samples, clock, app } = setUp()
  const one = app('a')
  await samples.sample(one)
  await clock.advance(2000)
  await samples.sample(one)
  await clock.advance(100)
  t.match(await samples.usage(one), { cpuPercent: 50 })
  t.match(samples.recent('container of a and d', 1000), { cpuPercent: 50 })
  await clock.advance(2000)
  t.equal(samples.recent('container of a and d', 1000), undefined)
  t.equal(samples.recent('unknown', 1000), undefined)
})

test('of more containers than can be kept the one is forgotten that was measured longest ago', async t => {
  const { clock, samples, app } = setUp()
  const [first, second] = [app('first'), app('second')]
  for (const one of [first, second]) await samples.sample(one)
  await clock.advance(2000)
  for (const one of [first, second]) await samples.sample(one)
  const isKnown = (id: string): boolean => samples.recent(`container of ${id} and d`, 60_000) !== undefined
  const others = Array.from({ length: 19_998 }, (_, at) => app(`other ${at}`, 'd', `project ${at % 100}`))
  await Promise.all(others.map(async one => await samples.sample(one)))
  t.same([isKnown('first'), isKnown('second')], [true, true])
  await samples.sample(app('one more'))
  t.same([isKnown('first'), isKnown('second')], [false, true])
})
