import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'
import { JobRunner } from '../../core/jobs/job-runner.js'
import { another, freshPostgres, log } from '../database/database-kit.js'
import { job, startJobs } from './job-kit.js'

const forever = async (signal: AbortSignal): Promise<void> => {
  await sleep(60_000, undefined, { signal })
}

test('a job runs once, soon, with its payload, and leaves nothing', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const seen: unknown[] = []
  await jobs.add('shop', [
    job('sell', async (payload, { jobId, attempt }) => {
      seen.push({ payload, attempt, isId: /^\d+$/.test(jobId) })
    })
  ])
  await jobs.for('shop').enqueue('sell', { first: true })
  await until(() => seen.length === 1, 'one has run')
  const startedAt = performance.now()
  for (let n = 1; n <= 10; n++) {
    await jobs.for('shop').enqueue('sell', { n })
    await until(() => seen.length === n + 1, `job ${n} has run`)
  }
  t.ok(performance.now() - startedAt < 8000, 'none waits for the next poll, which is two seconds away')
  t.same(seen.slice(0, 2), [
    { payload: { first: true }, attempt: 1, isId: true },
    { payload: { n: 1 }, attempt: 1, isId: true }
  ])
  t.ok(
    await until(
      async () => (await postgres.query('select from graphile_worker.jobs')).length === 0,
      'no job is left'
    )
  )
  await t.rejects(jobs.for('shop').enqueue('steal', {}), {
    message: 'the plugin "shop" declares no job "steal"'
  })
})

test('a job enqueued in a transaction exists exactly when it commits', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const seen: unknown[] = []
  await jobs.add('shop', [
    job('sell', async payload => {
      seen.push(payload)
    })
  ])
  await t.rejects(
    postgres.transaction(async tx => {
      await jobs.for('shop').enqueue('sell', { never: true }, {}, tx)
      throw new Error('no')
    })
  )
  await postgres.transaction(async tx => {
    await jobs.for('shop').enqueue('sell', { committed: true }, {}, tx)
    await sleep(50)
    t.same(seen, [])
  })
  await until(() => seen.length === 1, 'one has run')
  await sleep(50)
  t.same(seen, [{ committed: true }])
})

test('of jobs with one key at most one waits; a list is a payload like any other', async t => {
  const postgres = await freshPostgres(t)
  const jobs = new JobRunner({ postgres, log })
  t.teardown(async () => {
    await jobs.stop()
  })
  const seen: unknown[] = []
  await jobs.add('shop', [
    job('count', async payload => {
      seen.push(payload)
    }),
    job('other', async payload => {
      seen.push(payload)
    })
  ])
  for (const payload of [[1], [2], [3]]) await jobs.for('shop').enqueue('count', payload, { key: 'a' })
  await jobs.for('shop').enqueue('count', [4], { key: 'b' })
  await jobs.for('shop').enqueue('other', [5], { key: 'a' })
  await jobs.start()
  await until(() => seen.length === 3, 'three have run')
  await sleep(50)
  t.same(seen.sort(), [[3], [4], [5]])
})

test('jobs of one queue run one after another, without pauses; a job runs at its time', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  let running = 0
  const order: unknown[] = []
  await jobs.add('shop', [
    job('sell', async payload => {
      t.equal(++running, 1)
      await sleep(5)
      running--
      order.push(payload)
    })
  ])
  const startedAt = Date.now()
  for (let n = 0; n < 20; n++) await jobs.for('shop').enqueue('sell', { n }, { queue: 'till' })
  await until(() => order.length === 20, 'twenty have run')
  t.same(
    order,
    Array.from({ length: 20 }, (_, n) => ({ n }))
  )
  t.ok(Date.now() - startedAt < 20_000, 'they did not wait for polls')
  await jobs.for('shop').enqueue('sell', { n: 'later' }, { runAt: new Date(Date.now() + 300) })
  await sleep(200)
  t.equal(order.length, 20)
  t.ok(await until(() => order.length === 21, 'the later one has run'))
})

test('queues and keys of two plugins stay apart, also when they are called the same', async t => {
  const postgres = await freshPostgres(t)
  const jobs = new JobRunner({ postgres, log })
  t.teardown(async () => {
    await jobs.stop()
  })
  const seen: string[] = []
  const bank = new EventEmitter()
  await jobs.add('shop', [
    job('pay', async () => {
      seen.push('shop begins')
      await once(bank, 'paid', { signal: AbortSignal.timeout(8_000) })
      seen.push('shop ends')
    })
  ])
  await jobs.add('bank', [
    job('pay', async () => {
      seen.push('bank')
    })
  ])
  // Enqueued before anything runs: a key of both would leave one job, a queue of both would let one wait.
  for (const plugin of ['shop', 'bank'])
    await jobs.for(plugin).enqueue('pay', {}, { queue: 'till', key: 'today' })
  await jobs.start()
  await until(() => seen.includes('bank') && seen.includes('shop begins'), 'a job of each plugin has begun')
  bank.emit('paid')
  await until(() => seen.includes('shop ends'), 'the other job has ended')
  t.same(seen.toSorted(), ['bank', 'shop begins', 'shop ends'])
})

test('no fetch passes over a queue that another one is looking at: those of a process take turns', async t => {
  const postgres = await freshPostgres(t)
  const { query } = pg.Client.prototype
  t.teardown(() => {
    pg.Client.prototype.query = query
  })
  let fetching = 0
  let most = 0
  let fetches = 0
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const answer: unknown = Reflect.apply(query, this, args)
    if (args[0] instanceof Object && 'name' in args[0] && String(args[0].name).startsWith('get_job')) {
      fetches++
      most = Math.max(most, ++fetching)
      void (answer as Promise<unknown>).finally(() => {
        fetching--
      })
    }
    return answer
  } as typeof query
  const jobs = await startJobs(t, postgres)
  const seen: unknown[] = []
  await jobs.add('shop', [
    job('sell', async payload => {
      seen.push(payload)
    }),
    job('ship', async () => {}, { lane: 'long' })
  ])
  for (let n = 0; n < 20; n++) await jobs.for('shop').enqueue('sell', { n }, { queue: `till ${n}` })
  t.ok(await until(() => seen.length === 20, 'twenty have run'))
  t.ok(fetches > 20)
  t.equal(most, 1)
})

test('long jobs do not stop short ones', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres, { short: 1, long: 1 })
  let short = 0
  await jobs.add('shop', [
    job(
      'build',
      async (_payload, { signal }) => {
        await forever(signal)
      },
      { lane: 'long' }
    ),
    job('sell', async () => {
      short++
    })
  ])
  for (let n = 0; n < 5; n++) await jobs.for('shop').enqueue('build', {})
  for (let n = 0; n < 5; n++) await jobs.for('shop').enqueue('sell', {})
  t.ok(
    await until(
      async () =>
        short === 5 && (await jobs.status())[0]?.active === 0 && (await jobs.status())[1]?.active === 1,
      'all short jobs have run, and one long one is under way'
    )
  )
  t.same(await jobs.status(), [
    { lane: 'short', pending: 0, active: 0, retry: 0, failed: 0 },
    { lane: 'long', pending: 4, active: 1, retry: 0, failed: 0 }
  ])
})

test('a job that fails is tried again later and at last kept with its error', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const attempts: number[] = []
  await jobs.add('shop', [
    job(
      'sell',
      async (_payload, { attempt }) => {
        attempts.push(attempt)
        throw new Error(`attempt ${attempt} broke`)
      },
      { attempts: 2 }
    )
  ])
  await jobs.for('shop').enqueue('sell', {})
  await until(async () => (await jobs.status())[0]?.retry === 1, 'one waits to be tried again')
  t.match((await postgres.query('select last_error, run_at > now() as later from graphile_worker.jobs'))[0], {
    last_error: 'attempt 1 broke',
    later: true
  })
  t.ok(await until(async () => (await jobs.status())[0]?.failed === 1, 'one has failed'))
  t.same(attempts, [1, 2])
  t.match((await postgres.query('select last_error, attempts from graphile_worker.jobs'))[0], {
    last_error: 'attempt 2 broke',
    attempts: 2
  })
})

test('a job that takes too long is aborted and has failed, even when it then returns', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const reasons: string[] = []
  await jobs.add('shop', [
    job(
      'sell',
      async (_payload, { signal }) => {
        await new Promise(resolve => {
          signal.addEventListener('abort', resolve, { once: true })
        })
        reasons.push(String(signal.reason.message))
      },
      { timeoutMs: 50, attempts: 1 }
    )
  ])
  await jobs.for('shop').enqueue('sell', {})
  t.ok(await until(async () => (await jobs.status())[0]?.failed === 1, 'one has failed'))
  t.same(reasons, ['the job shop:sell did not end within 0.05 seconds'])
})

test('jobs of a plugin that is off wait, those of others run, and waiting jobs start with the plugin', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const seen: string[] = []
  const shop = [
    job('sell', async () => {
      seen.push('shop')
    })
  ]
  await jobs.add('shop', shop)
  await jobs.add('bank', [
    job('pay', async () => {
      seen.push('bank')
    })
  ])
  await jobs.remove('shop')
  await jobs.for('shop').enqueue('sell', {})
  await jobs.for('bank').enqueue('pay', {})
  await until(() => seen.length === 1, 'one has run')
  await sleep(100)
  t.same(seen, ['bank'])
  await jobs.add('shop', shop)
  t.ok(await until(() => seen.length === 2, 'two have run'))
})

test('turning a plugin off lets its jobs drain, then aborts them, and does not touch those of others; what was cut off runs again', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const log: string[] = []
  const turnedOff = new EventEmitter()
  const shop = [
    job('quick', async () => {
      await once(turnedOff, 'now')
      log.push('quick done')
    }),
    job(
      'slow',
      async (_payload, { signal, attempt }) => {
        log.push(`slow ${attempt}`)
        if (attempt === 1) await forever(signal)
      },
      { attempts: 2 }
    ),
    job(
      'once',
      async (_payload, { signal }) => {
        log.push('once')
        await forever(signal)
      },
      { attempts: 1 }
    )
  ]
  await jobs.add('shop', shop)
  await jobs.add('bank', [
    job('pay', async (_payload, { signal }) => {
      await once(turnedOff, 'after', { signal })
      log.push('paid')
    })
  ])
  for (const name of ['quick', 'slow', 'once']) await jobs.for('shop').enqueue(name, {})
  await jobs.for('bank').enqueue('pay', {})
  await until(async () => (await jobs.status())[0]?.active === 4, 'four run')
  const removed = jobs.remove('shop', { drainMs: 200 })
  turnedOff.emit('now')
  await removed
  t.same([...log].sort(), ['once', 'quick done', 'slow 1'])
  turnedOff.emit('after')
  t.ok(await until(() => log.includes('paid'), 'the job of the other plugin has run'))
  t.ok(
    await until(async () => {
      const [lane] = await jobs.status()
      return lane?.retry === 1 && lane.failed === 1 && lane.active === 0
    }, 'one waits to run again; the one without retries has failed')
  )
  await jobs.add('shop', shop)
  t.ok(await until(() => log.includes('slow 2'), 'soon, not after the pause of a failure', 2000))
})

test('a hundred toggles under load lose no job, fail none, and cost a few milliseconds', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const done = new Map<number, number>()
  const others: number[] = []
  const interrupted = { count: 0 }
  const shop = [
    job(
      'sell',
      async (payload, { signal }) => {
        const { n } = payload as { n: number }
        try {
          await sleep(5, undefined, { signal })
        } catch (error) {
          interrupted.count++
          throw error
        }
        done.set(n, (done.get(n) ?? 0) + 1)
      },
      { attempts: 2 }
    )
  ]
  await jobs.add('shop', shop)
  await jobs.add('bank', [
    job(
      'pay',
      async payload => {
        await sleep(5)
        others.push((payload as { n: number }).n)
      },
      { attempts: 1 }
    )
  ])
  let enqueued = 0
  let isToggling = true
  const load = (async () => {
    while (isToggling) {
      const n = enqueued++
      await jobs.for('shop').enqueue('sell', { n })
      await jobs.for('bank').enqueue('pay', { n })
      await sleep(2)
    }
  })()
  const durations: number[] = []
  for (let n = 0; n < 100; n++) {
    const startedAt = performance.now()
    await jobs.remove('shop')
    await jobs.add('shop', shop)
    durations.push(performance.now() - startedAt)
    await sleep(10)
  }
  isToggling = false
  await load
  t.ok(
    await until(
      () => done.size === enqueued && others.length === enqueued,
      'all jobs of both plugins have run',
      30_000
    ),
    `${done.size} and ${others.length} of ${enqueued} ran`
  )
  t.ok(interrupted.count > 0, 'some were cut off')
  t.equal(others.length, new Set(others).size, 'no job of another plugin ran twice')
  await until(async () => (await jobs.status()).every(({ active }) => active === 0), 'no job runs any more')
  t.same(await jobs.status(), [
    { lane: 'short', pending: 0, active: 0, retry: 0, failed: 0 },
    { lane: 'long', pending: 0, active: 0, retry: 0, failed: 0 }
  ])
  durations.sort((a, b) => a - b)
  t.comment(
    `${enqueued} jobs each, ${interrupted.count} cut off, toggle median ${durations[50]?.toFixed(2)} ms, worst ${durations[99]?.toFixed(1)} ms`
  )
})

test('a newer version of a plugin takes over: its jobs run in the new code, those that run end in the old', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const log: string[] = []
  const version = (n: number) => [
    job('sell', async (_payload, { signal }) => {
      log.push(`begin ${n}`)
      if (n === 1) await forever(signal)
    })
  ]
  await jobs.add('shop', version(1))
  await jobs.for('shop').enqueue('sell', {})
  await until(() => log.length === 1, 'one has run')
  await jobs.add('shop', version(2))
  await jobs.for('shop').enqueue('sell', {})
  await until(() => log.length === 2, 'two have run')
  t.same(log, ['begin 1', 'begin 2'])
  await jobs.retire('shop')
  t.ok(await until(() => log.length === 3, 'three have run'))
  t.equal(log[2], 'begin 2', 'the one that was cut off runs again, in the new code')
})

test('stopping ends the runs, gives the jobs back, and holds no connection', async t => {
  const postgres = await freshPostgres(t)
  const other = await another(t, postgres)
  const jobs = new JobRunner({ postgres: other, log })
  await jobs.start()
  let runs = 0
  await jobs.add('shop', [
    job('sell', async (_payload, { signal }) => {
      runs++
      await forever(signal)
    })
  ])
  await jobs.for('shop').enqueue('sell', {})
  await until(() => runs === 1, 'it runs')
  await jobs.stop()
  t.ok(
    await until(() => other.pool.totalCount === other.pool.idleCount, 'no connection is held'),
    `${other.pool.totalCount - other.pool.idleCount} connections are held`
  )
  const later = await startJobs(t, postgres)
  let again = 0
  await later.add('shop', [
    job('sell', async () => {
      again++
    })
  ])
  t.ok(await until(() => again === 1, 'another process runs it at once'))
})

test('jobs go on after all connections were lost', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const seen = new Set<unknown>()
  await jobs.add('shop', [
    job('sell', async payload => {
      await sleep(10)
      seen.add((payload as { n: number }).n)
    })
  ])
  const administrator = await another(t, postgres)
  let enqueued = 0
  for (let round = 0; round < 5; round++) {
    for (let n = 0; n < 10; n++) {
      const id = round * 10 + n
      if (
        await jobs
          .for('shop')
          .enqueue('sell', { n: id })
          .then(
            () => true,
            () => false
          )
      )
        enqueued++
    }
    await administrator.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
    )
    await sleep(100)
  }
  t.ok(enqueued > 0)
  t.ok(
    await until(() => seen.size >= enqueued, 'all jobs have run', 20_000),
    `${seen.size} of ${enqueued} ran`
  )
  t.ok(await until(async () => (await jobs.status())[0]?.active === 0, 'no job stays locked', 20_000))
  await jobs.for('shop').enqueue('sell', { n: 'last' })
  t.ok(await until(() => seen.has('last'), 'the last job has run'))
})

test('a notification of any text, and work that is none, leave the process alone', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const seen: unknown[] = []
  await jobs.add('shop', [
    job('sell', async payload => {
      seen.push(payload)
    })
  ])
  for (const payload of ['', 'x', 'null', '{"count":', '{"count":"many"}', '[]'])
    await postgres.query("select pg_notify('jobs:insert', $1)", [payload])
  await jobs.submit([])
  await jobs.for('shop').enqueue('sell', { n: 1 })
  t.ok(await until(() => seen.length === 1, 'one has run'))
})
