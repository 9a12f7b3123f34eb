/** How the history of the machine becomes coarser. */
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { HostStore, hostTiers } from '../host/host-store.js'

const hourMs = 3_600_000

test('the history of the machine', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  await k.disable('metrics')
  const store = new HostStore(k.database('metrics'))
  const start = new Date('2026-01-01T00:00:00Z')
  const after = (seconds: number): Date => new Date(start.getTime() + seconds * 1000)
  const all = { from: new Date('2000-01-01T00:00:00Z'), to: new Date('2100-01-01T00:00:00Z') }
  const countOf = async (step: number): Promise<number> =>
    (
      await k.query<{ count: number }>('select count(*) as count from metrics.host_point where step = $1', [
        step
      ])
    )[0]?.count ?? 0
  const measured = (seconds: number, cpuPercent: number | null) => ({
    recordedAt: after(seconds),
    cpuPercent,
    memory: { used: seconds, total: 10_000 },
    disk: null,
    swap: null
  })
  t.beforeEach(async () => {
    await k.query('delete from metrics.host_point')
  })

  await t.test('coarser points are averages of the finer ones, and of what there is alone', async t => {
    await store.add([measured(0, 10), measured(1, 20), measured(2, null), measured(65, 50)])
    await store.rollUp(after(70))
    const points = async (step: number) =>
      await k.query(
        'select recorded_at, cpu_percent, memory_used, disk_used from metrics.host_point where step = $1 order by 1',
        [step]
      )
    t.same(await points(10), [
      { recorded_at: after(0), cpu_percent: 15, memory_used: 1, disk_used: null },
      { recorded_at: after(60), cpu_percent: 50, memory_used: 65, disk_used: null }
    ])
    t.match(await points(60), [{ recorded_at: after(0), cpu_percent: 15 }, { recorded_at: after(60) }])
    t.match(await points(3600), [{ recorded_at: after(0), cpu_percent: 32.5 }])
  })

  await t.test('what comes later counts for the point whose time is not over', async t => {
    await store.add([measured(0, 10)])
    await store.rollUp(after(1))
    await store.add([measured(5, 30), measured(12, 50)])
    await store.rollUp(after(15))
    t.match(await store.read(all, hostTiers[1]), [{ cpu_percent: 35, recorded_at: after(0) }])
    t.equal(await countOf(10), 2)
    const ten = await k.query(
      'select cpu_percent from metrics.host_point where step = 10 order by recorded_at'
    )
    t.same(ten, [{ cpu_percent: 20 }, { cpu_percent: 50 }])
    await store.rollUp(after(15))
    t.same(
      await k.query('select cpu_percent from metrics.host_point where step = 10 order by recorded_at'),
      ten
    )
  })

  await t.test('a second is written once, whoever measures it', async t => {
    await store.add([measured(0, 10)])
    await store.add([{ ...measured(0, 99), recordedAt: new Date(start.getTime() + 400) }, measured(1, 11)])
    await store.add([])
    t.match(await store.read({ from: start, to: after(10) }, hostTiers[0]), [
      { cpu_percent: 10, recorded_at: start },
      { cpu_percent: 11 }
    ])
  })

  await t.test('each tier is deleted when its time is over, or the retention is', async t => {
    const now = new Date(start.getTime() + 40 * 24 * hourMs)
    await k.query(
      `insert into metrics.host_point (step, recorded_at)
       select step, $1::timestamptz - age * interval '1 hour' from unnest($2::int[]) step, generate_series(0, 959) age`,
      [now, hostTiers.map(({ stepSeconds }) => stepSeconds)]
    )
    await store.prune(87_600, now)
    t.same(
      await Promise.all(hostTiers.map(async ({ stepSeconds }) => await countOf(stepSeconds))),
      [3, 25, 337, 960, 960]
    )
    await store.prune(5, now)
    t.same(
      await Promise.all(hostTiers.map(async ({ stepSeconds }) => await countOf(stepSeconds))),
      [3, 6, 6, 6, 6]
    )
  })

  await t.test('a clock that was wrong for a while does not end it', async t => {
    await store.add([measured(0, 10), { ...measured(0, 90), recordedAt: new Date('2090-01-01T00:00:00Z') }])
    await store.rollUp(new Date('2090-01-01T00:00:01Z'))
    await store.add([measured(20, 30)])
    await store.rollUp(after(25))
    t.same(
      await k.query(
        "select cpu_percent from metrics.host_point where step = 10 and recorded_at < '2050-01-01' order by recorded_at"
      ),
      [{ cpu_percent: 10 }, { cpu_percent: 30 }]
    )
  })

  await t.test('many old points go, some thousands at a time', async t => {
    await k.query(
      `insert into metrics.host_point (step, recorded_at)
       select 1, $1::timestamptz - n * interval '1 second' from generate_series(7201, 32200) n`,
      [start]
    )
    await store.prune(336, start)
    t.equal(await countOf(1), 0)
  })
})
