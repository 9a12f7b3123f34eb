import { definePlugin, kernel, type Schedules } from 'busbar/sdk'
import { createTestKernel, type TestClock, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const minute = 60_000

interface Probe {
  readonly runs: string[]
  schedules: Schedules | undefined
}

/** A plugin with one declared schedule, and a job for those that it sets. */
const plugin = (probe: Probe, cron: string | null, missed: 'run-once' | 'skip' = 'skip') => ({
  manifest: { id: 'probe', grants: ['schedules'] },
  definition: definePlugin({
    id: 'probe',
    needs: { schedules: kernel.schedules },
    start({ use }) {
      probe.schedules = use.schedules
      return {}
    },
    jobs(job) {
      job<{ plan: string }>({
        name: 'backup',
        run: async ({ plan }) => {
          probe.runs.push(plan)
        }
      })
    },
    schedules(schedule) {
      if (cron !== null)
        schedule({
          name: 'sweep',
          cron,
          missed,
          run: async ({ dueAt }) => {
            probe.runs.push(dueAt.toISOString())
          }
        })
    }
  })
})

async function start(
  t: Test,
  options: {
    probe: Probe
    clock: TestClock
    cron?: string | null
    missed?: 'run-once' | 'skip'
    state?: TestKernel['state']
  }
): Promise<TestKernel> {
  const { probe, clock, cron = '0 * * * *', missed, state } = options
  const k = await createTestKernel({
    clock,
    inline: [plugin(probe, cron, missed)],
    ...(state === undefined ? {} : { state })
  })
  t.teardown(async () => {
    await k.close()
  })
  return k
}

/** Moves the clock until as much has run; each step ends what the step before enqueued. */
async function advanceUntil(
  clock: TestClock,
  probe: Probe,
  count: number,
  stepMs = 60_000
): Promise<boolean> {
  return await until(
    async () => {
      if (probe.runs.length >= count) return true
      await clock.advance(stepMs)
      return false
    },
    `${count} runs`,
    20_000
  )
}

test('a declared schedule runs at each of its times, once, and a reload does not repeat one', async t => {
  const probe: Probe = { runs: [], schedules: undefined }
  const clock = testClock('2026-01-01T00:58:00Z')
  const k = await start(t, { probe, clock, cron: '*/5 * * * *' })
  const admin = await k.as.session()
  t.ok(await advanceUntil(clock, probe, 1))
  t.equal((await admin.post('/api/plugins/probe/reload')).status, 200)
  t.ok(await advanceUntil(clock, probe, 2))
  t.same(probe.runs, ['2026-01-01T01:00:00.000Z', '2026-01-01T01:05:00.000Z'])
})

test('times missed while the platform was down are made up for once, or left out', async t => {
  for (const missed of ['run-once', 'skip'] as const) {
    const probe: Probe = { runs: [], schedules: undefined }
    const clock = testClock('2026-01-01T00:58:00Z')
    const first = await start(t, { probe, clock, missed })
    await first.stop()
    const later = testClock('2026-01-01T05:58:00Z')
    await start(t, { probe, clock: later, missed, state: first.state })
    t.ok(await advanceUntil(later, probe, missed === 'skip' ? 1 : 2))
    t.same(
      probe.runs,
      missed === 'skip'
        ? ['2026-01-01T06:00:00.000Z']
        : ['2026-01-01T01:00:00.000Z', '2026-01-01T06:00:00.000Z'],
      missed
    )
  }
})

test('a plugin that is off misses its times, and one that no longer declares a schedule is not asked for it', async t => {
  const probe: Probe = { runs: [], schedules: undefined }
  const clock = testClock('2026-01-01T00:58:00Z')
  const k = await start(t, { probe, clock, cron: '*/5 * * * *' })
  const admin = await k.as.session()
  t.equal((await admin.post('/api/plugins/probe/disable')).status, 200)
  await clock.advance(10 * minute)
  t.equal((await admin.post('/api/plugins/probe/enable')).status, 200)
  t.ok(await advanceUntil(clock, probe, 1))
  t.same(probe.runs, ['2026-01-01T01:10:00.000Z'])
  await k.stop()
  const later = await start(t, { probe, clock, cron: null, state: k.state })
  const isForgotten = async (): Promise<boolean> => {
    await clock.advance(minute)
    return (await later.query("select from kernel.schedule where plugin = 'probe'")).length === 0
  }
  t.ok(await until(isForgotten, 'its row goes when its time comes'))
  t.same(probe.runs, ['2026-01-01T01:10:00.000Z'])
})

test('a schedule that is set enqueues its job with its payload until it is removed, and says its times', async t => {
  const probe: Probe = { runs: [], schedules: undefined }
  const clock = testClock('2026-01-01T00:58:00Z')
  await start(t, { probe, clock, cron: null })
  const schedules = probe.schedules
  if (schedules === undefined) throw new Error('not started')
  const times = await schedules.set('nightly', {
    cron: '0 2 * * *',
    timeZone: 'Europe/Berlin',
    job: 'backup',
    payload: { plan: 'nightly' }
  })
  t.same(times, { nextAt: new Date('2026-01-01T01:00:00Z'), lastAt: null })
  t.ok(await advanceUntil(clock, probe, 1))
  t.same(probe.runs, ['nightly'])
  t.same(
    [...(await schedules.times(['nightly', 'none']))],
    [['nightly', { nextAt: new Date('2026-01-02T01:00:00Z'), lastAt: new Date('2026-01-01T01:00:00Z') }]]
  )
  await schedules.remove('nightly')
  await clock.advance(10 * minute)
  t.equal((await schedules.times(['nightly'])).size, 0)
  t.same(probe.runs, ['nightly'])
})

test('a time that the database could not take is not passed over: it is enqueued once the database can', async t => {
  const probe: Probe = { runs: [], schedules: undefined }
  const clock = testClock('2026-01-01T00:58:00Z')
  const k = await start(t, { probe, clock, missed: 'run-once' })
  // 57014: the statement was given up, as by a server that is short of time.
  await k.query(`create function public.give_up() returns trigger language plpgsql as
    $$ begin raise exception 'given up' using errcode = '57014'; end $$`)
  await k.query(
    'create trigger give_up before insert on graphile_worker._private_jobs for each row execute function public.give_up()'
  )
  for (let step = 0; step < 5; step += 1) {
    await clock.advance(minute)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  const [schedule] = await k.query<{ next_at: Date }>(
    "select next_at from kernel.schedule where plugin = 'probe'"
  )
  t.equal(schedule?.next_at.toISOString(), '2026-01-01T01:00:00.000Z', 'it is still due')
  await k.query('drop trigger give_up on graphile_worker._private_jobs')
  t.ok(await advanceUntil(clock, probe, 1))
  t.equal(probe.runs[0], '2026-01-01T01:00:00.000Z')
})

test('a schedule for a job that the plugin does not declare, or with a bad expression, is refused', async t => {
  const probe: Probe = { runs: [], schedules: undefined }
  await start(t, { probe, clock: testClock(), cron: null })
  const schedules = probe.schedules
  if (schedules === undefined) throw new Error('not started')
  await t.rejects(schedules.set('a', { cron: '* * * * *', job: 'other', payload: {} }), {
    message: 'the plugin "probe" declares no job "other"'
  })
  await t.rejects(schedules.set('a', { cron: 'often', job: 'backup', payload: {} }), {
    code: 'E_SCHEDULE_CRON',
    status: 400
  })
  t.throws(() => schedules.preview({ cron: '* * * * *', timeZone: 'x' }, 3), { code: 'E_SCHEDULE_TIME_ZONE' })
  t.same(schedules.preview({ cron: '0 0 1 * *' }, 2), [
    new Date('2026-02-01T00:00:00Z'),
    new Date('2026-03-01T00:00:00Z')
  ])
})
