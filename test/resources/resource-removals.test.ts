import type { Log } from 'busbar/sdk'
import { test } from 'tap'
import type { Postgres } from '../../core/database/postgres.js'
import type { ResourceRecord } from '../../core/declarations/records.js'
import { ResourceRemovals } from '../../core/resources/resource-removals.js'
import { RunningKinds } from '../../core/resources/running-kinds.js'
import { ServiceRegistry } from '../../core/services/registry.js'
import { testClock } from '../../sdk/testing/test-clock.js'

/** Two kinds of one plugin, of which the lockers have a removal; every row that is asked for is there unless `isGone`. */
function setUp({ isGone = false, fails = false } = {}) {
  const done: string[] = []
  const asked: string[] = []
  const record = (kind: string, removal?: object): ResourceRecord =>
    ({ plugin: 'lockers', kind, table: kind, parents: {}, removal }) as unknown as ResourceRecord
  const locker = record('locker', {
    run: async () => {
      done.push('run')
      if (fails) throw new Error('broken')
    },
    deleted: async () => void done.push('deleted')
  })
  const tag = record('tag')
  const kinds = new RunningKinds()
  kinds.add(
    {},
    [locker, tag].map(one => ({ record: one, schema: 'lockers', self: {} }))
  )
  const postgres = {
    onTablesOf: () => postgres,
    query: async (text: string) => {
      asked.push(text)
      return isGone || text.endsWith('limit 0') ? [] : [{ id: '1' }]
    },
    transaction: async (run: (tx: unknown) => Promise<unknown>) => await run({})
  } as unknown as Postgres
  const submitted: object[] = []
  const errors: string[] = []
  const clock = testClock(1000)
  const removals = new ResourceRemovals({
    postgres,
    kinds,
    jobs: { submit: async (jobs: readonly object[]) => void submitted.push(...jobs) } as never,
    registry: new ServiceRegistry(),
    disabled: { runTemporarily: async () => undefined },
    order: () => [],
    clock,
    log: { error: (_fields: unknown, message: string) => errors.push(message) } as unknown as Log
  })
  const round = async (payload: object, signal = new AbortController().signal): Promise<void> => {
    const [job] = removals.jobsOf('lockers', [tag, locker])
    await job?.run(payload as never, { signal } as never)
  }
  return { removals, done, asked, submitted, errors, round, tag, locker, clock }
}

test('what is marked is taken up again: of one plugin or all, and of kinds that have a removal', async t => {
  const { removals, submitted, asked } = setUp()
  await removals.resume('other')
  t.same(asked, [])
  for (const plugin of ['lockers', undefined]) {
    await removals.resume(plugin)
    t.match(submitted.splice(0), [{ plugin: 'lockers', payload: { kind: 'locker', id: '1', round: 0 } }])
  }
  t.equal(asked.filter(text => text.includes('"tag"')).length, 2, 'of the others only the table is checked')
})

test('a plugin has a job of removals where a kind of it has a removal', t => {
  const { removals, tag, locker } = setUp()
  t.same(removals.jobsOf('lockers', []), [])
  t.same(removals.jobsOf('lockers', [tag]), [])
  t.equal(removals.jobsOf('lockers', [tag, locker]).length, 1)
  t.end()
})

test('a marked resource is removed, and one that is not marked, or of no such kind, is let be', async t => {
  const one = setUp()
  await one.round({ kind: 'locker', id: '1', round: 0 })
  t.same(one.done, ['run', 'deleted'])
  const gone = setUp({ isGone: true })
  await gone.round({ kind: 'locker', id: '1', round: 0 })
  t.same(gone.done, [])
  for (const payload of [{}, { kind: 'tag', id: '1' }, { kind: 'ship', id: '1' }, { kind: 'locker' }]) {
    const { round, done, submitted, errors, asked } = setUp()
    await round(payload)
    t.same([done, submitted, errors], [[], [], []], JSON.stringify(payload))
    t.notOk(asked.some(text => text.startsWith('delete')))
  }
})

test('a round that fails is followed by the next, unless it was ended', async t => {
  const { round, submitted, errors } = setUp({ fails: true })
  await round({ kind: 'locker', id: '1', round: 1 })
  t.match(submitted, [{ payload: { kind: 'locker', id: '1', round: 2 }, runAt: new Date(11_000) }])
  t.match(errors, ['the locker is not removed yet: a step of the clean-up failed'])
  const ended = setUp({ fails: true })
  await t.rejects(ended.round({ kind: 'locker', id: '1' }, AbortSignal.abort(new Error('stopping'))), {
    message: 'stopping'
  })
  t.same(ended.submitted, [])
})
