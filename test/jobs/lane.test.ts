import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { PostgresOptions } from '../../core/database/postgres.js'
import { JobStore } from '../../core/jobs/job-store.js'
import { Lane } from '../../core/jobs/lane.js'
import { another, freshPostgres, log } from '../database/database-kit.js'

async function startLane(t: Test, workers = 2, more: Partial<PostgresOptions> = {}) {
  const postgres = await freshPostgres(t, undefined, more)
  await new JobStore(postgres, log).prepare()
  const ran: string[] = []
  const warnings: string[] = []
  const failed: string[] = []
  let ended = 0
  const lane = new Lane({
    name: 'short',
    workers,
    postgres,
    log: { ...quiet, warn: (_: object, text: string) => warnings.push(text) } as unknown as Log,
    onFailed: async ids => void failed.push(...ids),
    onWorkersEnded: () => {
      ended++
    }
  })
  t.teardown(async () => await lane.stop(Promise.resolve()))
  return {
    postgres,
    lane,
    ran,
    warnings,
    failed,
    ended: () => ended,
    take: (name: string): void => lane.take(name, async () => void ran.push(name)),
    add: async (name: string): Promise<void> =>
      void (await postgres.query(`select from graphile_worker.add_job('${name}')`)),
    /** How many locks say that workers live. */
    locks: async (): Promise<number> =>
      (
        await postgres.query(
          "select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"
        )
      ).length
  }
}

const quiet = { trace: () => {}, debug: () => {}, info: () => {}, error: () => {} }

test('a lane takes what it is told to take, and leaves it when it is told to', async t => {
  const { lane, ran, take, add } = await startLane(t, 1)
  lane.nudge()
  // Its one worker is not looking for jobs meanwhile: a fetch under way may still take what is left.
  lane.take('shop:a', async () => {
    ran.push('shop:a')
    lane.leave('shop:a')
    lane.leave('shop:unknown')
    for (const name of ['shop:a', 'shop:unknown', 'shop:b']) await add(name)
  })
  take('shop:b')
  lane.start()
  await add('shop:a')
  lane.nudge()
  await until(() => ran.length === 2, 'what comes after it is taken')
  t.same(ran, ['shop:a', 'shop:b'])
  take('shop:a')
  lane.nudge(1)
  await until(() => ran.length === 3, 'what has waited is taken')
  t.same(ran, ['shop:a', 'shop:b', 'shop:a'])
})

test('a job that is not announced is found all the same', async t => {
  const { lane, ran, take, add } = await startLane(t)
  take('shop:a')
  lane.start()
  await add('shop:a')
  lane.nudge()
  await until(() => ran.length === 1, 'the workers have begun')
  await add('shop:a')
  t.ok(await until(() => ran.length === 2, 'it is found'))
})

test('a lane that stops lets its job end, takes no other, and holds no lock then', async t => {
  const { lane, ran, ended, take, add, locks } = await startLane(t)
  let end = (): void => {}
  const ends = new Promise<void>(resolve => {
    end = resolve
  })
  lane.take('shop:long', async () => {
    ran.push('begun')
    await ends
    ran.push('ended')
  })
  take('shop:a')
  lane.start()
  await add('shop:long')
  lane.nudge()
  await until(() => ran.length === 1, 'it runs')
  t.equal(await locks(), 1)
  let isStopped = false
  const stopped = lane.stop(ends).then(() => {
    isStopped = true
  })
  await add('shop:a')
  lane.nudge()
  t.equal(isStopped, false)
  t.equal(ended(), 0)
  end()
  await stopped
  t.same(ran, ['begun', 'ended'])
  t.equal(ended(), 1, 'what its workers may still hold is to be unlocked')
  t.equal(await locks(), 0)
})

test('workers that lost their fetch are replaced once, and the jobs are taken by the new ones', async t => {
  const { postgres, lane, ran, warnings, failed, ended, take, add, locks } = await startLane(t, 1)
  const other = await another(t, postgres)
  take('shop:a')
  lane.start()
  await add('shop:a')
  lane.nudge()
  await until(() => ran.length === 1, 'the workers have begun')
  await until(
    async () => (await postgres.query('select id from graphile_worker._private_jobs')).length === 0,
    'the end of the first job is recorded, and only fetches wait from now on'
  )
  const client = await other.pool.connect()
  await client.query('begin')
  await client.query('lock table graphile_worker._private_jobs in access exclusive mode')
  lane.nudge()
  await until(
    async () =>
      (
        await client.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
      ).rows.length > 0,
    'a fetch breaks off'
  )
  await client.query('rollback')
  client.release()
  await until(() => ended() === 1, 'the workers before have ended')
  await add('shop:a')
  lane.nudge()
  await until(() => ran.length === 2, 'new ones take it')
  t.same(warnings, ['the workers of a lane are replaced'])
  t.same(failed, [])
  t.equal(await locks(), 1)
  await lane.stop(Promise.resolve())
  t.equal(ended(), 2)
  t.equal(warnings.length, 1, 'those of a lane that stops are not')
})

test('failures are told when they are recorded', async t => {
  const { postgres, lane, failed, add } = await startLane(t)
  lane.take('shop:bad', async () => await Promise.reject(new Error('broken')))
  lane.start()
  await add('shop:bad')
  lane.nudge()
  await until(() => failed.length === 1, 'it has failed')
  t.match(await postgres.query('select id::text, locked_by, last_error from graphile_worker._private_jobs'), [
    { id: failed[0], locked_by: null, last_error: 'broken' }
  ])
})

test('workers whose statements wait for a lock too long ask again, and no job runs twice', async t => {
  const { postgres, lane, ran, warnings, ended, add } = await startLane(t, 1, { lockTimeoutMs: 200 })
  const outsider = await another(t, postgres)
  let unlock = (): void => {}
  const unlocked = new Promise<void>(resolve => {
    unlock = resolve
  })
  let holding: Promise<void> | undefined
  lane.take('shop:a', async () => {
    ran.push('shop:a')
    await new Promise<void>(locked => {
      holding = outsider.transaction(async tx => {
        await outsider.query('lock table graphile_worker._private_jobs in exclusive mode', [], tx)
        locked()
        await unlocked
      })
    })
  })
  lane.start()
  await add('shop:a')
  await until(() => holding !== undefined, 'the job to run')
  const waiting = async () =>
    (
      await postgres.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
      )
    ).length
  for (let times = 0; times < 2; times++) {
    await until(async () => (await waiting()) > 0, 'the worker waits for the lock')
    await until(async () => (await waiting()) === 0, 'its time is up')
  }
  unlock()
  await holding
  const isDone = async () => (await postgres.query('select from graphile_worker._private_jobs')).length === 0
  await until(isDone, 'the job is complete')
  t.same(ran, ['shop:a'])
  t.same(warnings, [])
  t.equal(ended(), 0)
})
