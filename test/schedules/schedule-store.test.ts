import { type Log, Problem, type Tx } from 'busbar/sdk'
import { type TestClock, testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { migrate } from '../../core/database/migrations.js'
import { pluginDatabase } from '../../core/database/plugin-database.js'
import type { Submission } from '../../core/jobs/recorded-job.js'
import { kernelMigrations } from '../../core/kernel-schema.js'
import type { RecordedSchedule } from '../../core/schedules/recorded-schedule.js'
import { type NewSchedule, ScheduleStore } from '../../core/schedules/schedule-store.js'
import { Scheduler } from '../../core/schedules/scheduler.js'
import { freshPostgres, log } from '../database/database-kit.js'

const at = (time: string): Date => new Date(`2026-01-01T${time}Z`)

async function openStore(t: Test) {
  const postgres = await freshPostgres(t)
  const plans = [{ plugin: 'kernel', schema: 'kernel', migrations: kernelMigrations }]
  t.equal((await migrate(postgres, plans, { version: '1.0.0', log })).failed.size, 0)
  const store = new ScheduleStore(pluginDatabase(postgres, 'kernel'))
  return {
    store,
    rows: async () =>
      await postgres.query<{ plugin: string; key: string; next_at: Date | null; last_at: Date | null }>(
        'select plugin, key, next_at, last_at from kernel.schedule order by 1, 2'
      )
  }
}

const schedule = (plugin: string, key: string, more: Partial<NewSchedule> = {}): NewSchedule => ({
  plugin,
  key,
  cron: '0 * * * *',
  timeZone: 'UTC',
  job: 'work',
  payload: { of: key },
  missed: 'skip',
  nextAt: at('01:00:00'),
  isDeclared: false,
  ...more
})

test('a schedule that is written again keeps its next time unless its expression or its time zone is another', async t => {
  const { store } = await openStore(t)
  const put = async (more: Partial<NewSchedule> = {}) =>
    (await store.put([schedule('shop', 'set:a', { nextAt: at('05:00:00'), ...more })])).map(
      ({ next_at: next }) => next
    )
  await store.put([schedule('shop', 'set:a'), schedule('shop', 'set:b')])
  t.same(await put({ payload: { of: 'another' }, job: 'other', missed: 'run-once' }), [at('01:00:00')])
  const due = async () =>
    await store.transaction(async tx => await store.due(['shop'], at('06:00:00'), 1, tx))
  t.match(await due(), [{ key: 'set:a', payload: { of: 'another' }, job: 'other', missed: 'run-once' }])
  t.same(await put({ timeZone: 'Europe/Berlin' }), [at('05:00:00')])
  t.same(await put({ cron: '1 * * * *', timeZone: 'Europe/Berlin', nextAt: at('04:00:00') }), [
    at('04:00:00')
  ])
})

test('what is due comes in the order of its times, as much as is asked for, and of active plugins alone', async t => {
  const { store } = await openStore(t)
  await store.put([
    schedule('shop', 'late', { nextAt: at('02:00:00') }),
    schedule('shop', 'now', { nextAt: at('03:00:00') }),
    schedule('shop', 'early', { nextAt: at('01:00:00') }),
    schedule('shop', 'future', { nextAt: new Date(at('03:00:00').getTime() + 1) }),
    schedule('shop', 'never', { nextAt: null }),
    schedule('off', 'early', { nextAt: at('00:30:00') })
  ])
  const keys = async (plugins: readonly string[], atMost: number, tx: Tx): Promise<string[]> =>
    (await store.due(plugins, at('03:00:00'), atMost, tx)).map(({ key }) => key)
  await store.transaction(async tx => {
    t.same(await keys(['shop', 'none'], 2, tx), ['early', 'late'])
    const others = await store.transaction(async other => await keys(['shop'], 10, other))
    t.same(others, ['now'], 'another process passes over what is locked')
  })
  t.same(await store.nextDue(['shop']), at('01:00:00'))
  t.same(await store.nextDue(['shop', 'off']), at('00:30:00'))
  t.equal(await store.nextDue(['none']), undefined)
})

test('what has fired has its next time, and its last one unless it was left out', async t => {
  const { store, rows } = await openStore(t)
  await store.put([schedule('shop', 'a'), schedule('shop', 'b'), schedule('shop', 'c')])
  const record = async (key: string, nextAt: Date | null, lastAt: Date | null) =>
    await store.transaction(
      async tx => await store.recordFired([{ plugin: 'shop', key, nextAt, lastAt }], tx)
    )
  await record('a', at('02:00:00'), at('01:00:00'))
  await record('a', at('03:00:00'), null)
  await record('b', null, at('01:00:00'))
  t.match(await rows(), [
    { key: 'a', next_at: at('03:00:00'), last_at: at('01:00:00') },
    { key: 'b', next_at: null, last_at: at('01:00:00') },
    { key: 'c', next_at: at('01:00:00'), last_at: null }
  ])
})

/** A scheduler whose jobs are noted; one of the name that fails is refused with an error. */
async function scheduler(t: Test) {
  const { store, rows } = await openStore(t)
  const clock: TestClock = testClock(at('00:58:00'))
  const submitted: Submission[] = []
  const sleeps: number[] = []
  const errors: unknown[] = []
  const failures = new Map<string, Error>()
  const listeners = new Set<() => void>()
  let told = 0
  const schedules = new Scheduler({
    store,
    clock: {
      ...clock,
      sleep: async (ms, signal) => {
        sleeps.push(ms)
        await clock.sleep(ms, signal)
      }
    },
    jobs: {
      has: (plugin, job) => plugin === 'shop' && job !== 'gone',
      submit: async all => {
        for (const { name } of all) {
          const failure = failures.get(name)
          if (failure !== undefined) throw failure
        }
        submitted.push(...all)
      }
    },
    signals: {
      signal: async () => {
        told++
        for (const listener of [...listeners]) listener()
      },
      onSignal: (_, listener) => {
        const hear = (): void => listener('')
        listeners.add(hear)
        return () => listeners.delete(hear)
      }
    },
    log: {
      info: () => {},
      warn: () => {},
      error: (fields: object) => errors.push(fields)
    } as unknown as Log
  })
  const stop = new AbortController()
  return {
    store,
    rows,
    clock,
    submitted,
    /** How long it was to sleep, each time. */
    sleeps,
    errors,
    failures,
    schedules,
    stop,
    told: () => told,
    listeners,
    /** Runs it until the test ends, or until it fails. */
    run: () => {
      const running = schedules.run(stop.signal)
      running.catch(() => {})
      t.teardown(async () => {
        stop.abort()
        await running.catch(() => {})
      })
      return running
    }
  }
}

const declared = (name: string, more: Partial<RecordedSchedule> = {}): RecordedSchedule => ({
  name,
  cron: '0 * * * *',
  timeZone: 'UTC',
  missed: 'skip',
  lane: 'short',
  attempts: 3,
  timeoutMs: 10_000,
  run: async () => {},
  ...more
})

test('a plugin keeps what it has set when it declares others, and loses what it declares no more', async t => {
  const { schedules, rows, told } = await scheduler(t)
  const keys = async (): Promise<string[]> => (await rows()).map(({ plugin, key }) => `${plugin} ${key}`)
  await schedules.for('shop').set('own', { cron: '0 * * * *', job: 'work', payload: {} })
  await schedules.add('other', [declared('a')])
  await schedules.add('shop', [declared('a'), declared('b')])
  t.same(await keys(), ['other declared:a', 'shop declared:a', 'shop declared:b', 'shop set:own'])
  await schedules.add('shop', [declared('b'), declared('c')])
  t.same(await keys(), ['other declared:a', 'shop declared:b', 'shop declared:c', 'shop set:own'])
  t.equal(told(), 4, 'processes are told of each change')
  await schedules.add('shop', [])
  t.equal(told(), 4, 'there is nothing to tell')
})

test('a key has 1 to 200 characters', async t => {
  const { schedules } = await scheduler(t)
  const set = async (key: string) =>
    await schedules.for('shop').set(key, { cron: '0 * * * *', job: 'work', payload: {} })
  for (const key of ['', 'x'.repeat(201)])
    await t.rejects(set(key), { message: 'the key of a schedule has 1 to 200 characters' })
  for (const key of ['x', 'x'.repeat(200)]) t.same(await set(key), { nextAt: at('01:00:00'), lastAt: null })
})

test('a schedule of a long key has a queue of a short name, and both are its own', async t => {
  const { schedules, clock, submitted, run } = await scheduler(t)
  await schedules.add('shop', [declared('sweep')])
  for (const key of ['y'.repeat(60), 'y'.repeat(61), `${'y'.repeat(199)}1`, `${'y'.repeat(199)}2`])
    await schedules.for('shop').set(key, { cron: '0 * * * *', job: 'work', payload: { key } })
  await clock.advance(120_000)
  void run()
  await until(() => submitted.length === 5, 'all are enqueued')
  const queueOf = (key: string): string => submitted.find(one => one.key === `schedule ${key}`)?.queue ?? ''
  t.match(
    submitted.find(({ key }) => key === 'schedule declared:sweep'),
    {
      name: 'schedule.sweep',
      queue: 'schedule declared:sweep',
      payload: { dueAt: '2026-01-01T01:00:00.000Z' }
    }
  )
  t.equal(queueOf(`set:${'y'.repeat(60)}`), `schedule set:${'y'.repeat(60)}`, 'of 64 characters')
  const queues = [`set:${'y'.repeat(61)}`, `set:${'y'.repeat(199)}1`, `set:${'y'.repeat(199)}2`].map(queueOf)
  t.equal(new Set(queues).size, 3)
  for (const queue of queues) t.match(queue, /^schedule [0-9a-f]{64}$/)
  t.same(
    submitted.map(({ payload }) => (payload as { key?: string }).key?.length ?? 0).sort((a, b) => a - b),
    [0, 60, 61, 200, 200]
  )
})

test('more than one batch of what is due is enqueued before it sleeps, each once', async t => {
  const { store, schedules, clock, submitted, run } = await scheduler(t)
  await schedules.add('shop', [])
  await store.put(
    Array.from({ length: 250 }, (_, n) => schedule('shop', `set:${n}`, { nextAt: at('00:58:00') }))
  )
  void run()
  await until(() => submitted.length >= 250, 'all are enqueued')
  t.equal(new Set(submitted.map(({ key }) => key)).size, 250)
  await clock.advance(60_000)
  t.equal(submitted.length, 250)
})

test('a schedule whose job cannot be enqueued holds up no other, and its next time counts', async t => {
  for (const failure of [
    new Problem(400, 'E_JOB_PAYLOAD', 'the payload is too large'),
    Object.assign(new Error('too long'), { code: '22001' }),
    new Error('it has no JSON')
  ]) {
    const { store, schedules, submitted, errors, failures, rows, run } = await scheduler(t)
    failures.set('bad', failure)
    await schedules.add('shop', [])
    await store.put([
      schedule('shop', 'set:a', { nextAt: at('00:10:00'), missed: 'run-once' }),
      schedule('shop', 'set:b', { nextAt: at('00:20:00'), missed: 'run-once', job: 'bad' }),
      schedule('shop', 'set:c', { nextAt: at('00:30:00'), missed: 'run-once' }),
      schedule('shop', 'set:d', { nextAt: at('00:40:00'), missed: 'run-once', job: 'gone' })
    ])
    void run()
    await until(async () => (await rows()).length === 3 && submitted.length === 2, 'all have been looked at')
    t.same(
      submitted.map(({ key }) => key),
      ['schedule set:a', 'schedule set:c']
    )
    t.match(errors, [{ plugin: 'shop', schedule: 'set:b', dueAt: at('00:20:00') }])
    t.equal(errors.length, 1)
    t.match(await rows(), [
      { key: 'set:a', next_at: at('01:00:00'), last_at: at('00:10:00') },
      { key: 'set:b', next_at: at('01:00:00'), last_at: null },
      { key: 'set:c', next_at: at('01:00:00'), last_at: at('00:30:00') }
    ])
  }
})

test('what the database cannot take now stays due', async t => {
  for (const failure of [
    new Problem(503, 'E_DATABASE', 'the database is away'),
    Object.assign(new Error('out of connections'), { code: '53300' })
  ]) {
    const { store, schedules, submitted, errors, failures, rows, run } = await scheduler(t)
    failures.set('work', failure)
    await schedules.add('shop', [])
    await store.put([schedule('shop', 'set:a', { nextAt: at('00:57:30') })])
    await t.rejects(run(), { message: failure.message })
    t.same(submitted, [])
    t.same(errors, [])
    t.match(await rows(), [{ next_at: at('00:57:30'), last_at: null }])
  }
})

test('a change is noticed at once or within half a minute, and the times of a plugin that is off do not count', async t => {
  const { store, schedules, clock, submitted, sleeps, stop, listeners, run } = await scheduler(t)
  const asleep = async (times: number) =>
    await until(() => sleeps.length === times, `it sleeps for the ${times}th time`)
  const running = run()
  await asleep(1)
  await store.put([schedule('shop', 'set:unannounced', { nextAt: at('00:58:02') })])
  await schedules.add('shop', [])
  await clock.advance(30_000)
  await asleep(2)
  t.equal(submitted.length, 1)
  await clock.advance(10_000)
  await schedules.for('shop').set('announced', { cron: '59 0 * * *', job: 'work', payload: {} })
  await asleep(3)
  await clock.advance(20_000)
  await asleep(4)
  t.equal(submitted.length, 2)
  schedules.remove('shop')
  await clock.advance(30_000)
  await asleep(5)
  await clock.advance(30_000)
  await asleep(6)
  t.equal(submitted.length, 2, 'it is off, and misses the full hour')
  t.same(sleeps, [30_000, 30_000, 20_000, 30_000, 30_000, 30_000])
  t.equal(listeners.size, 1)
  stop.abort()
  await running
  t.equal(listeners.size, 0, 'it listens no more')
})
