import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { BuildQueueStore } from '../queue/build-queue-store.js'
import { OwnerTurnStore } from '../queue/owner-turn-store.js'
import { openDatabase } from './store-database.js'

/** The columns of deployments that turns are read from. */
const deployments = {
  name: '001-deployments',
  phase: 'expand',
  sql: `create table $schema.deployment (
    id uuid primary key, project_id uuid not null, application_id uuid not null, status text not null,
    started_at timestamptz not null default now(), seen_at timestamptz, begun_at timestamptz, queued_at timestamptz,
    admitted_at timestamptz, waiting_for text, waiting_cause text)`
} as const

test('builds that wait hold no turn of their owner, and none begins beyond them', async t => {
  const { k, database } = await openDatabase(t, deployments)
  const { body } = await (await k.as.session()).post('/api/projects', { name: 'Turns', slug: 'turns' })
  const now = new Date()
  const add = async (status: string, set: { begun?: true; queued?: true; admitted?: true; waits?: true }) => {
    const id = randomUUID()
    await database.sql(
      `insert into $schema.deployment (id, project_id, application_id, status, begun_at, queued_at, admitted_at, waiting_for)
       values (:id, :project, :id, :status, :begun, :queued, :admitted, :waits)`,
      {
        id,
        project: body.id,
        status,
        begun: set.begun ? now : null,
        queued: set.queued ? now : null,
        admitted: set.admitted ? now : null,
        waits: set.waits ? 'waiting' : null
      }
    )
    return id
  }
  const turns = new OwnerTurnStore(database)
  const builds = new BuildQueueStore(database)
  const state = async (id: string) => await database.transaction(async tx => await turns.standing(id, tx))

  const waiting = await add('pending', { waits: true })
  for (let count = 0; count < 5; count++) await add('pending', { begun: true, queued: true, waits: true })
  t.same(await state(waiting), { has_turn: false, before: 0 }, 'builds that wait are not under way')
  t.same(
    (await turns.due(6)).map(({ id }) => id),
    [waiting]
  )

  const older = await add('pending', { queued: true, waits: true })
  t.same(
    await state(older),
    { has_turn: true, before: 1 },
    'one that an earlier release has put into the queue of builds'
  )
  t.same(
    (await turns.due(6)).map(({ id }) => id),
    [waiting],
    'is left to that queue'
  )
  const rooms = async () =>
    (await database.transaction(async tx => await builds.waiting(tx, 6))).map(({ has_room: room }) => room)
  t.same(await rooms(), [true, true, true, true, true, true])

  await add('pending', { queued: true, admitted: true })
  await add('building', { begun: true, queued: true, admitted: true })
  await add('deploying', { begun: true })
  await add('deploying', { begun: true })
  t.same(await state(waiting), { has_turn: false, before: 4 })
  t.same(await rooms(), [true, true, false, false, false, false], 'as many as the owner may have under way')
  await add('deploying', { begun: true })
  await add('deploying', { begun: true })
  t.same(await turns.due(6), [])
  t.same(await rooms(), [false, false, false, false, false, false])

  const later = await add('pending', {})
  t.same(
    await state(later),
    { has_turn: false, before: 7 },
    'one that waits and was asked for earlier comes before it'
  )
  t.same(await state(waiting), { has_turn: false, before: 6 })
})

test('a deployment waits for its turn longer than statements wait for other locks, and has their limit again', async t => {
  const { k, database } = await openDatabase(t, deployments)
  for (const store of [new OwnerTurnStore(database), new BuildQueueStore(database)]) {
    const holding = new AbortController()
    const end = new AbortController()
    const isHeld = once(holding.signal, 'abort')
    const held = database.transaction(async tx => {
      await store.lock(tx)
      holding.abort()
      await once(end.signal, 'abort')
    })
    await isHeld
    const short = '100ms'
    let isSettled = false
    const waited = database
      .transaction(async tx => {
        await database.sql(`set local lock_timeout = '${short}'`, undefined, tx)
        await store.lock(tx)
        return await database.sql<{ lock_timeout: string }>('show lock_timeout', undefined, tx)
      })
      .finally(() => {
        isSettled = true
      })
    void waited.catch(() => {})
    const waits =
      "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory' and query_start < clock_timestamp() - interval '300 ms'"
    await until(async () => isSettled || (await k.query(waits)).length > 0, 'one waits for the lock')
    end.abort()
    await held
    t.same(await waited, [{ lock_timeout: '5s' }])
  }
})
