/** Applications that are followed: one timer, and one statement for all of them. */
import { testClock, until } from 'busbar/sdk/testing'
import pino from 'pino'
import { test } from 'tap'
import { ApplicationFeed } from '../application/application-feed.js'
import type { ApplicationRow, RunningApplication } from '../application/application-store.js'
import type { ContainerUsage } from '../application/container-usage.js'

const usage = (cpuPercent: number): ContainerUsage => ({
  measuredAt: new Date(),
  cpuPercent,
  memoryBytes: 1,
  memoryLimitBytes: 2,
  receivedBytes: 3,
  sentBytes: 4
})

/** Applications in memory, and what was asked about them. */
function setUp() {
  const clock = testClock()
  const rows = new Map<string, ApplicationRow>()
  const asked: Array<readonly string[]> = []
  const measured: string[] = []
  const warnings: string[] = []
  const fault: { ofStore?: Error; ofEngine?: Error; wait?: Promise<void> } = {}
  const log = pino(
    { level: 'info' },
    { write: (line: string) => void warnings.push(JSON.parse(line).msg as string) }
  )
  const store = {
    some: async (ids: readonly string[]) => {
      asked.push(ids)
      if (fault.ofStore !== undefined) throw fault.ofStore
      return ids.map(id => rows.get(id)).filter(row => row !== undefined)
    }
  }
  const samples = {
    usage: async ({ id }: RunningApplication) => {
      measured.push(id)
      await fault.wait
      if (fault.ofEngine !== undefined) throw fault.ofEngine
      return usage(measured.length)
    }
  }
  const add = (id: string, status: ApplicationRow['status'] = 'running'): void => {
    rows.set(id, { id, project_id: 'p', status, container_deployment_id: 'd', container_port: null })
  }
  const feed = new ApplicationFeed({ store: store as never, samples, clock, log })
  const follow = (id: string) => {
    const heard: ContainerUsage[] & { hasEnded?: boolean } = []
    const stop = feed.follow(id, {
      give: one => {
        heard.push(one)
      },
      end: () => {
        heard.hasEnded = true
      }
    })
    return { heard, stop }
  }
  return { clock, rows, asked, measured, warnings, fault, add, feed, follow }
}

test('who begins to follow does not wait for the next round, and hundreds at once are asked for together', async t => {
  const { asked, measured, add, follow } = setUp()
  const ids = Array.from({ length: 300 }, (_, at) => `app-${at}`)
  for (const id of ids) add(id)
  const all = ids.map(follow)
  await until(() => all.every(({ heard }) => heard.length === 1), 'a point for each')
  t.equal(asked.length, 1)
  t.equal(measured.length, 300)
  for (const { stop } of all) stop()
})

test('each round asks once for all, and measures each once, however many follow it', async t => {
  const { clock, asked, measured, add, follow } = setUp()
  add('a')
  add('b')
  const all = ['a', 'a', 'b'].map(follow)
  await until(() => all.every(({ heard }) => heard.length === 1), 'the first points')
  asked.length = 0
  measured.length = 0
  await clock.advance(6000)
  t.same(asked, [
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b']
  ])
  t.same(measured, ['a', 'b', 'a', 'b', 'a', 'b'])
  t.same(
    all.map(({ heard }) => heard.length),
    [4, 4, 4]
  )
  for (const { stop } of all) stop()
})

test('it rests while nobody follows, and forgets who did', async t => {
  const { clock, asked, add, feed, follow } = setUp()
  add('a')
  const [one, two] = [follow('a'), follow('a')]
  await until(() => one.heard.length === 1, 'a point')
  one.stop()
  one.stop()
  t.equal(feed.followed, 1)
  two.stop()
  t.equal(feed.followed, 0)
  const before = asked.length
  await clock.advance(60_000)
  t.equal(asked.length, before)
})

test('one that does not run is not measured, an unhealthy one is', async t => {
  const { clock, measured, add, rows, follow } = setUp()
  for (const status of ['inactive', 'stopped', 'error', 'unhealthy', 'running'] as const) add(status, status)
  rows.set('never', {
    id: 'never',
    project_id: 'p',
    status: 'running',
    container_deployment_id: null,
    container_port: null
  })
  const all = [...rows.keys()].map(follow)
  await clock.advance(2000)
  t.same([...new Set(measured)].sort(), ['running', 'unhealthy'])
  for (const { stop } of all) stop()
})

test('followers are told when there is no such application any more', async t => {
  const { clock, add, rows, feed, follow } = setUp()
  add('a')
  const [one, two] = [follow('a'), follow('gone')]
  await until(() => two.heard.hasEnded === true, 'the end of what was never there')
  t.equal(one.heard.hasEnded, undefined)
  rows.delete('a')
  await clock.advance(2000)
  t.equal(one.heard.hasEnded, true)
  t.equal(feed.followed, 0)
  one.stop()
})

test('an engine that is slow is not asked again before it has answered', async t => {
  const { clock, measured, add, fault, follow } = setUp()
  let answer = (): void => {}
  fault.wait = new Promise(resolve => {
    answer = resolve
  })
  add('a')
  const { heard, stop } = follow('a')
  await clock.advance(20_000)
  t.same(measured, ['a'])
  answer()
  await until(() => heard.length === 1, 'its answer')
  await clock.advance(2000)
  t.equal(heard.length, 2)
  stop()
})

test('while the database or the engine is away nothing comes; it goes on with them, and the log says each once', async t => {
  const { clock, add, fault, feed, warnings, follow } = setUp()
  add('a')
  const { heard, stop } = follow('a')
  await until(() => heard.length === 1, 'a point')
  for (const which of ['ofStore', 'ofEngine'] as const) {
    const before = heard.length
    fault[which] = new Error('away')
    await clock.advance(20_000)
    t.equal(heard.length, before)
    t.equal(feed.followed, 1)
    delete fault[which]
    await clock.advance(2000)
    t.equal(heard.length, before + 1)
  }
  t.same(warnings, [
    'applications cannot be measured for now',
    'applications are measured again',
    'applications cannot be measured for now',
    'applications are measured again'
  ])
  stop()
})
