import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { JobStore, wakeChannel } from '../../core/jobs/job-store.js'
import { workerLockName } from '../../core/jobs/worker-lock.js'
import { freshPostgres, log } from '../database/database-kit.js'

test('what dead workers hold is unlocked and told to others; without one nothing is told', async t => {
  const postgres = await freshPostgres(t)
  const store = new JobStore(postgres, log)
  await store.prepare()
  const told: string[] = []
  const stop = await postgres.session.listen(wakeChannel, payload => told.push(payload))
  t.teardown(stop)
  const hold = async (name: string, worker: string): Promise<void> => {
    await postgres.query(`select from graphile_worker.add_job('shop:${name}')`)
    await postgres.query(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = '${worker}'
       where task_id = (select id from graphile_worker._private_tasks where identifier = 'shop:${name}')`
    )
  }
  const locked = async (): Promise<string[]> =>
    (
      await postgres.query<{ locked_by: string }>(
        'select locked_by from graphile_worker.jobs where locked_by is not null'
      )
    ).map(({ locked_by: by }) => by)
  const heard = async (): Promise<string[]> => {
    // Notifications come in their order, so what was told before this one has come.
    await store.wake(99)
    await until(() => told.at(-1) === '{"count":99}', 'the last notification')
    return told.splice(0).slice(0, -1)
  }
  await heard()
  t.equal(await store.unlockDead(), 0)
  t.same(await heard(), [])
  await hold('a', 'dead')
  await hold('b', 'dead')
  await hold('c', 'gone')
  await hold('d', 'alive')
  const lock = await postgres.session.tryLock(workerLockName('alive'))
  await heard()
  t.equal(await store.unlockDead(), 2, 'workers, not jobs')
  t.same(await heard(), ['{"count":2}'])
  t.same(await locked(), ['alive'], 'a job is left to a worker that lives')
  t.equal(await store.unlockDead(), 0)
  t.same(await heard(), [])
  await lock?.release()
})
