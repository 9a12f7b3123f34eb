import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { makeApplication } from '../../domains/test/lab.js'
import { surplusOf } from '../read/row-shares.js'
import { record, stored, storedPaths } from './requests-lab.js'

takeAwayFromEngine()

const day = 86_400_000
const ago = (days: number): number => Date.now() - days * day

const holds = async (k: TestKernel, paths: readonly string[]): Promise<void> => {
  await until(
    async () => (await storedPaths(k)).join() === paths.join(),
    `there is ${paths.join(', ')} and nothing else`
  )
}

test('requests are kept for so many days, and so many of them', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  // What is too old goes at every start, at this one too.
  await k.configure('requests', { retention_days: 0 })
  record(k, { path: '/8', at: ago(8) }, { path: '/6', at: ago(6) }, { path: '/0' })
  await stored(k, 3)
  await k.configure('requests', {})
  await holds(k, ['/6', '/0'])
  await k.configure('requests', { retention_days: 1 })
  await holds(k, ['/0'])
  await k.configure('requests', { retention_days: 0, max_rows: 1_000 })
  record(k, { path: '/80', at: ago(80) })
  await stored(k, 2)
  await k.query(
    `with turn as (update requests.progress set last_position = last_position + 1500 returning last_position - 1500 as before)
    insert into requests.request (position, id, hostname, method, path, status_code, latency_ms, recorded_at)
    select before + n, gen_random_uuid(), 'a', 'GET', n::text, 200, 1, now() from generate_series(1, 1500) n, turn`
  )
  await k.reload('requests')
  await holds(
    k,
    Array.from({ length: 1000 }, (_, n) => String(n + 501))
  )
  for (const bad of [{ retention_days: -1 }, { max_rows: 1 }, { retention_days: 1.5 }])
    await t.rejects(k.configure('requests', bad))
})

test('who has most gives up first, so that a flood of one pushes out nothing of the others', async t => {
  const rowsOf = (...rows: readonly number[]) =>
    rows.map((count, at) => ({ applicationId: at === 0 ? null : String(at), rows: count }))
  t.same(surplusOf(rowsOf(10, 20), 30), [])
  t.same(surplusOf(rowsOf(10, 500, 1000), 600), [
    { applicationId: '1', rows: 205 },
    { applicationId: '2', rows: 705 }
  ])
  t.same(surplusOf(rowsOf(5, 5, 5), 3).length, 3)
  t.same(surplusOf(rowsOf(1000), 100), [{ applicationId: null, rows: 900 }])

  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const [quiet, flooded] = [await makeApplication(admin), await makeApplication(admin)]
  record(k, { applicationId: quiet.id, path: '/quiet' })
  await stored(k, 1)
  await k.query(
    `with turn as (update requests.progress set last_position = last_position + 3000 returning last_position - 3000 as before)
    insert into requests.request (position, id, application_id, hostname, method, path, status_code, latency_ms, recorded_at)
    select before + n, gen_random_uuid(), case when n <= 1500 then cast($1 as uuid) end, 'a', 'GET', n::text, 200, 1, now()
    from generate_series(1, 3000) n, turn`,
    [flooded.id]
  )
  await k.configure('requests', { max_rows: 1_000 })
  const kept = async (): Promise<ReadonlyArray<readonly [string, number]>> =>
    (
      await k.query<{ whose: string; rows: number }>(
        `select case when application_id is null then 'nobody' when application_id = $1 then 'quiet' else 'flooded' end as whose,
           cast(count(*) as integer) as rows
         from requests.request group by 1 order by 1`,
        [quiet.id]
      )
    ).map(({ whose, rows }) => [whose, rows] as const)
  await until(
    async () => (await kept()).reduce((sum, [, rows]) => sum + rows, 0) <= 1000,
    'no more than a thousand are kept'
  )
  t.same(await kept(), [
    ['flooded', 499],
    ['nobody', 499],
    ['quiet', 1]
  ])
})

test('the requests of an application go with it, also while the plugin is off', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const [gone, stays] = [await makeApplication(admin), await makeApplication(admin)]
  record(k, { applicationId: gone.id, path: '/gone' }, { applicationId: stays.id, path: '/stays' })
  record(k, { applicationId: null, path: '/none' })
  await stored(k, 3)
  await k.disable('requests')
  t.equal((await admin.delete(`/api/projects/${gone.projectId}`)).status, 200)
  await k.runRemovalsNow()
  await holds(k, ['/stays', '/none'])
  await until(
    async () => (await k.query('select from applications.application where id = $1', [gone.id])).length === 0,
    'the application is gone'
  )
})
