import { setTimeout as sleep } from 'node:timers/promises'
import { event } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { EventHub } from '../../core/events/events.js'
import type { JobRunner } from '../../core/jobs/job-runner.js'
import { freshPostgres, log } from '../database/database-kit.js'
import { startJobs } from './job-kit.js'

const clock = testClock('2026-03-01T10:00:00.000Z')
const hubOver = (jobs: JobRunner): EventHub => new EventHub({ jobs, clock, log })
const sold = event<{ n: number }>('shop.sold')

test('an event reaches every plugin that listens, once each, when the writer has committed', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const events = hubOver(jobs)
  const seen: unknown[] = []
  const listen = (plugin: string) =>
    events.subscribe(plugin, [
      {
        eventId: 'shop.sold',
        handle: async data => {
          seen.push([plugin, data])
        }
      }
    ])
  await jobs.add('bank', listen('bank'))
  await jobs.add('mail', listen('mail'))
  await t.rejects(
    postgres.transaction(async tx => {
      await events.for('shop').emit(sold, { n: 0 }, tx)
      throw new Error('rolled back')
    })
  )
  await postgres.transaction(async tx => {
    await events.for('shop').emit(sold, { n: 1 }, tx)
  })
  await until(() => seen.length === 2, 'two have run')
  await sleep(50)
  t.same(seen.sort(), [
    ['bank', { n: 1 }],
    ['mail', { n: 1 }]
  ])
})

test('only the owner emits; an event without listeners stores nothing', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const events = hubOver(jobs)
  await t.rejects(
    postgres.transaction(async tx => {
      await events.for('shopping').emit(sold, { n: 1 }, tx)
    }),
    { message: 'the plugin "shopping" may not emit "shop.sold": only the plugin named before the dot may' }
  )
  await postgres.transaction(async tx => {
    await events.for('shop').emit(sold, { n: 1 }, tx)
  })
  t.same(await postgres.query('select from graphile_worker.jobs'), [])
})

test('several facts are emitted in one statement, and each is delivered by itself', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const events = hubOver(jobs)
  const seen: unknown[] = []
  const handle = async (data: unknown) => {
    seen.push(data)
  }
  await jobs.add('bank', events.subscribe('bank', [{ eventId: 'shop.sold', handle }]))
  await postgres.transaction(async tx => {
    await events.for('shop').emitEach(sold, [{ n: 1 }, { n: 2 }, { n: 3 }], tx)
    await events.for('shop').emitEach(sold, [], tx)
  })
  await until(() => seen.length === 3, 'three have run')
  t.same(seen.map(data => (data as { n: number }).n).sort(), [1, 2, 3])
})

test('what happens while a plugin reloads is delivered afterwards; after it was turned off, nothing is kept for it', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const events = hubOver(jobs)
  const seen: unknown[] = []
  const start = async () => {
    await jobs.add(
      'bank',
      events.subscribe('bank', [
        {
          eventId: 'shop.sold',
          handle: async data => {
            seen.push(data)
          }
        }
      ])
    )
  }
  const sell = async (n: number) => {
    await postgres.transaction(async tx => {
      await events.for('shop').emit(sold, { n }, tx)
    })
  }
  await start()
  await jobs.remove('bank')
  await sell(1)
  await start()
  t.ok(await until(() => seen.length === 1, 'one has run'))
  await jobs.remove('bank')
  events.unsubscribe('bank')
  await sell(2)
  await start()
  await sell(3)
  await until(() => seen.length === 2, 'two have run')
  t.same(seen, [{ n: 1 }, { n: 3 }])
})

test('a handler that fails is tried again; the plugin may have two handlers for one event', async t => {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const events = hubOver(jobs)
  const seen: string[] = []
  await jobs.add(
    'bank',
    events.subscribe('bank', [
      {
        eventId: 'shop.sold',
        handle: async () => {
          seen.push('first')
        }
      },
      {
        eventId: 'shop.sold',
        handle: async () => {
          seen.push('second')
          if (seen.length === 2) throw new Error('once')
        }
      }
    ])
  )
  await postgres.transaction(async tx => {
    await events.for('shop').emit(sold, { n: 1 }, tx)
  })
  t.ok(await until(() => seen.length === 4, 'four have run'))
  t.same(seen, ['first', 'second', 'first', 'second'])
})
