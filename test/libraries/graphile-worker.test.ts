import { until } from 'busbar/sdk/testing'
import { Logger, runMigrations, runTaskList, type TaskList } from 'graphile-worker'
import type { Pool, QueryConfig } from 'pg'
import { type Test, test } from 'tap'
import { freshPostgres } from '../database/database-kit.js'

const quiet = new Logger(() => () => {})

/** Its workers on a pool of which they see `connect` alone, and what they have asked the database. */
async function work(t: Test) {
  const postgres = await freshPostgres(t)
  await runMigrations({ pgPool: postgres.pool, logger: quiet })
  const asked: Array<{ readonly name: string; readonly values: readonly unknown[] }> = []
  const touched = new Set<string>()
  const client = {
    query: async ({ name = '', ...query }: QueryConfig) => {
      asked.push({ name, values: query.values ?? [] })
      return await postgres.pool.query({ ...query, name })
    },
    release: () => {},
    on: () => {},
    removeListener: () => {}
  }
  const connect = (onConnect?: (error: undefined, client: object, release: () => void) => void) => {
    if (onConnect === undefined) return Promise.resolve(client)
    onConnect(undefined, { ...client, query: async () => ({ rows: [] }) }, () => {})
  }
  const pool = new Proxy({ connect } as unknown as Pool, {
    get: (target, name) => {
      touched.add(String(name))
      return Reflect.get(target, name)
    }
  })
  const done: string[] = []
  const tasks: TaskList = {
    first: async () => void done.push('first'),
    failing: async () => {
      done.push('failing')
      throw new Error('as it is meant to')
    }
  }
  const workers = runTaskList(
    {
      concurrency: 1,
      pollInterval: 100,
      noHandleSignals: true,
      logger: quiet,
      preset: {
        worker: {
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          // The first look for stale locks is after a random part of the shortest interval, a minute at most.
          minResetLockedInterval: 100,
          maxResetLockedInterval: 200
        }
      }
    },
    tasks,
    pool
  )
  t.teardown(async () => await workers.gracefulShutdown())
  return {
    workers,
    asked,
    touched,
    tasks,
    done,
    add: async (task: string, queue?: string): Promise<string> => {
      const [job] = await postgres.query<{ id: string }>(
        'select id::text from graphile_worker.add_job($1, queue_name => $2, max_attempts => 2)',
        [task, queue ?? null]
      )
      return job?.id ?? ''
    },
    askedOf: (prefix: string) => asked.filter(({ name }) => name.startsWith(prefix))
  }
}

test('graphile-worker: its statements have the names by which they are told apart', async t => {
  const { add, askedOf, done } = await work(t)
  for (const [task, queue] of [['first'], ['first', 'q'], ['failing'], ['failing', 'q']] as const)
    await add(task, queue)
  await until(() => done.length >= 4, 'all have run')
  for (const name of ['get_job', 'complete_job_q/', 'fail_job/', 'fail_job_q/', 'clear_stale_locks'])
    t.ok(await until(() => askedOf(name).length > 0, `a statement ${name}`))
})

for (const queue of [undefined, 'q'])
  test(`graphile-worker: the second value of ${queue === undefined ? 'fail_job' : 'fail_job_q'} names the jobs that failed`, async t => {
    const { add, askedOf } = await work(t)
    const id = await add('failing', queue)
    const [failure] = await until(() => {
      const found = askedOf('fail_job')
      return found.length > 0 && found
    }, 'a failure is written')
    t.match(JSON.parse(String(failure?.values[1])), [{ jobId: id }])
  })

test('graphile-worker: it reads the keys of its task list before every fetch', async t => {
  const { add, tasks, done } = await work(t)
  await add('later')
  await add('first')
  await until(() => done.includes('first'), 'another one has run')
  tasks.later = async () => void done.push('later')
  t.ok(await until(() => done.includes('later'), 'a task that was added has run'))
  Object.defineProperty(tasks, 'first', { value: tasks.first, enumerable: false })
  await add('first')
  await add('later')
  await until(() => done.filter(name => name === 'later').length === 2, 'another one has run')
  t.equal(done.filter(name => name === 'first').length, 1, 'one that is not enumerable is not fetched')
})

test('graphile-worker: of its pool it calls nothing but connect()', async t => {
  const { add, done, touched } = await work(t)
  await add('first')
  await until(() => done.length > 0, 'a job has run')
  t.same([...touched], ['connect'])
})
