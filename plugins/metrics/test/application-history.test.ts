/** What is kept of applications: measured a few at a time, and made coarser. */
import { randomUUID } from 'node:crypto'
import type { ContainerStats } from 'busbar/api/containers'
import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import pino from 'pino'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { ApplicationHistory } from '../application/application-history.js'
import {
  ApplicationHistoryStore,
  type ApplicationPoint,
  applicationTiers
} from '../application/application-history-store.js'
import type { RunningApplication } from '../application/application-store.js'
import { busy, makeProject, runApplication } from './metrics-lab.js'

/** Applications in memory, each of which uses half a core. */
function setUp(count: number, retentionHours = 336) {
  const clock = testClock()
  const start = clock.now().getTime()
  const running: RunningApplication[] = Array.from({ length: count }, (_, at) => ({
    id: `app-${at}`,
    projectId: 'p',
    deploymentId: 'd'
  }))
  const measured: string[] = []
  const written: ApplicationPoint[] = []
  const logged: string[] = []
  const tidied: string[] = []
  const fault: { ofStore?: Error; ofEngine?: Error } = {}
  const containerOf = new Map<string, string>()
  const seconds = (): number => (clock.now().getTime() - start) / 1000
  const history = new ApplicationHistory({
    clock,
    log: pino(
      { level: 'info' },
      { write: (line: string) => void logged.push(JSON.parse(line).msg as string) }
    ),
    retentionHours,
    applications: { running: async () => running } as never,
    samples: {
      sample: async ({ id }) => {
        measured.push(id)
        if (fault.ofEngine !== undefined) throw fault.ofEngine
        const stats = {
          at: clock.now(),
          cpuSeconds: seconds() / 2,
          memoryBytes: 100,
          memoryLimitBytes: 200,
          receivedBytes: seconds() * 3,
          sentBytes: seconds() * 5
        } as ContainerStats
        return { containerId: containerOf.get(id) ?? id, takenAt: clock.now(), stats }
      }
    },
    store: {
      add: async (points: readonly ApplicationPoint[]) => {
        if (fault.ofStore !== undefined) throw fault.ofStore
        written.push(...points)
      },
      rollUp: async () => void tidied.push('coarser'),
      prune: async (hours: number) => void tidied.push(`kept for ${hours} h`)
    } as never
  })
  const ending = new AbortController()
  const run = async (): Promise<void> => await history.run(ending.signal)
  return {
    clock,
    running,
    measured,
    written,
    logged,
    tidied,
    fault,
    containerOf,
    history,
    run,
    end: () => ending.abort()
  }
}

test('each application is measured once a minute, and its points are averages of that time', async t => {
  const { clock, measured, written, run, end } = setUp(3)
  const running = run()
  await clock.advance(130_000)
  t.equal(measured.length, 9)
  t.equal(written.length, 6)
  t.match(written[0], {
    applicationId: 'app-0',
    cpuPercent: 50,
    memoryBytes: 100,
    memoryLimitBytes: 200,
    receivedBytes: 3,
    sentBytes: 5
  })
  end()
  await running
})

test('where the clock of the machine is set back, they are measured, written and made coarser as before', async t => {
  const { clock, measured, written, tidied, run, end } = setUp(1)
  const running = run()
  await clock.advance(130_000)
  const before = { measured: measured.length, written: written.length, tidied: tidied.length }
  clock.set(-86_400_000)
  await clock.advance(600_000)
  t.equal(measured.length, before.measured + 10)
  t.ok(written.length > before.written)
  t.ok(tidied.length > before.tidied)
  end()
  await running
})

test('no more than four a second are measured, however many there are, and all have their turn', async t => {
  const { clock, measured, run, end } = setUp(500)
  const running = run()
  await clock.advance(118_000)
  t.equal(measured.length, 60 * 8)
  await clock.advance(20_000)
  t.equal(new Set(measured).size, 500)
  end()
  await running
})

test('a container that was replaced begins anew, and one that has gone is forgotten', async t => {
  const { clock, running, written, containerOf, measured, run, end } = setUp(1)
  const history = run()
  await clock.advance(70_000)
  t.equal(written.length, 1)
  containerOf.set('app-0', 'another')
  await clock.advance(60_000)
  t.equal(written.length, 1)
  await clock.advance(60_000)
  t.equal(written.length, 2)
  running.pop()
  const before = measured.length
  await clock.advance(300_000)
  t.ok(measured.length <= before + 1)
  end()
  await history
})

test('what an outage of the database leaves unwritten is written after it, and the log tells of both', async t => {
  const { clock, written, logged, fault, run, end } = setUp(1)
  const running = run()
  fault.ofStore = new Error('away')
  await clock.advance(310_000)
  t.equal(written.length, 0)
  delete fault.ofStore
  await clock.advance(10_000)
  t.ok(written.length >= 4, String(written.length))
  t.same(logged, [
    'the history of applications cannot be written',
    'over: the history of applications cannot be written'
  ])
  fault.ofEngine = new Error('away')
  await clock.advance(120_000)
  delete fault.ofEngine
  await clock.advance(60_000)
  t.same(logged.slice(2), [
    'applications cannot be measured for their history',
    'over: applications cannot be measured for their history'
  ])
  end()
  await running
})

test('what is left is written when the plugin stops, and points are made coarser every ten minutes', async t => {
  const { clock, written, tidied, history, run, end } = setUp(1, 48)
  const running = run()
  await clock.advance(1_201_000)
  t.same(tidied.slice(0, 4), ['coarser', 'kept for 48 h', 'coarser', 'kept for 48 h'])
  end()
  await running
  const before = written.length
  await history.stop()
  t.ok(written.length >= before)
})

test('with a retention of 0 nothing is measured', async t => {
  const { clock, measured, run } = setUp(1, 0)
  await run()
  await clock.advance(120_000)
  t.same(measured, [])
})

test('the history of an application', async t => {
  if (!(await requireEngine(t))) return
  const clock = testClock('2026-01-31T12:00:00Z')
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const project = await makeProject(admin)
  const app = await runApplication(k, admin, project, { script: busy })

  await t.test('is measured though nobody looks, and read as averages', async t => {
    const rows = await until(async () => {
      await clock.advance(12_000)
      k.resetRateLimits()
      const { body } = await admin.get(`${app.path}/metrics`)
      return body.length >= 2 && (body as any[])
    }, 'two points')
    t.match(rows[0], {
      cpu_percent: Number,
      memory_usage: Number,
      memory_limit: Number,
      network_rx_bytes_per_second: Number,
      network_tx_bytes_per_second: Number,
      recorded_at: String
    })
    t.ok(
      rows.every(({ cpu_percent: cpu }) => cpu > 5),
      JSON.stringify(rows)
    )
    t.match(await admin.get(`${app.path}/metrics?range=1y`), { status: 400, body: { field: 'range' } })
    const foreign = await makeProject(admin)
    t.equal((await admin.get(`/api/projects/${foreign.id}/applications/${app.id}/metrics`)).status, 404)
  })

  await t.test('becomes one point an hour, and has at most a thousand in an answer', async t => {
    const store = new ApplicationHistoryStore(k.database('metrics'))
    await k.query('delete from metrics.application_point')
    await k.query(
      `insert into metrics.application_point
         (application_id, step, recorded_at, cpu_percent, memory_used, memory_limit, received, sent)
       select $1, 60, at, case when extract(minute from at) < 30 then 20 else 40 end, 100, 200, 1, 2
       from generate_series(timestamptz '2026-01-30T13:00:00Z', '2026-01-31T11:29:00Z', interval '1 minute') at`,
      [app.id]
    )
    const now = new Date('2026-01-31T11:30:00Z')
    await store.rollUp(now)
    await store.rollUp(now)
    const [, hourly] = applicationTiers
    const all = { from: new Date('2026-01-01T00:00:00Z'), to: new Date('2026-02-01T00:00:00Z') }
    const hours = await store.read(app.id, all, hourly)
    t.equal(hours.length, 23)
    t.match(hours[0], {
      cpu_percent: 30,
      memory_usage: 100,
      memory_limit: 200,
      network_rx_bytes_per_second: 1
    })
    t.match(hours.at(-1), { cpu_percent: 20 })
    k.resetRateLimits()
    const { body } = await admin.get(`${app.path}/metrics?from=2026-01-30T13:00:00Z&to=2026-01-31T11:30:00Z`)
    t.ok(body.length > 600 && body.length <= 1000, String(body.length))
    await store.prune(5, now)
    t.equal((await store.read(app.id, all, hourly)).length, 5)
  })

  await t.test('takes nothing of an application that is gone or going, and goes with it', async t => {
    const store = new ApplicationHistoryStore(k.database('metrics'))
    const point = {
      recordedAt: new Date('2026-01-31T10:00:00.5Z'),
      cpuPercent: 1.5,
      memoryBytes: 1,
      memoryLimitBytes: 2,
      receivedBytes: 0.25,
      sentBytes: 0
    }
    await store.add([
      { ...point, applicationId: randomUUID() },
      { ...point, applicationId: app.id },
      { ...point, applicationId: app.id }
    ])
    const count = async () =>
      (
        await k.query<{ count: number }>(
          "select count(*) as count from metrics.application_point where recorded_at = '2026-01-31T10:00:00.5Z'"
        )
      )[0]?.count
    t.equal(await count(), 1)
    t.equal((await admin.delete(app.path)).status, 200)
    await until(async () => {
      await k.runRemovalsNow()
      return (await k.query('select 1 from applications.application where id = $1', [app.id])).length === 0
    }, 'its removal')
    t.equal(await count(), 0)
  })
})
