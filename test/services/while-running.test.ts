import { test } from 'tap'
import type { PluginServices } from '../../core/services/container.js'
import { isOfEndedRun, RunEnd, whileRunning } from '../../core/services/while-running.js'

test('services of a run that has ended refuse, but for the time', async t => {
  const end = new RunEnd()
  let stopped = 0
  const given = {
    clock: { now: () => 1, sleep: async () => 2, every: () => () => stopped++ },
    database: { sql: async () => 3, statement: () => async () => 4, name: 'text' },
    bus: { publish: () => 5 }
  }
  const { clock, database, bus } = whileRunning(
    'a',
    given as unknown as PluginServices,
    end
  ) as unknown as typeof given
  const run = database.statement()
  clock.every()
  t.same(
    [clock.now(), await clock.sleep(), await database.sql(), await run(), bus.publish()],
    [1, 2, 3, 4, 5]
  )
  t.equal(database.name, 'text')
  t.ok(Object.isFrozen(clock))
  end.come()
  t.equal(stopped, 1)
  t.same([clock.now(), await clock.sleep()], [1, 2])
  const refused = { status: 503, code: 'E_PLUGIN_OFF', details: { plugin: 'a' } }
  await t.rejects(database.sql(), refused)
  await t.rejects(run(), refused)
  for (const call of [bus.publish, clock.every, database.statement]) t.throws(call, refused)
  t.equal(isOfEndedRun(await database.sql().catch((error: unknown) => error)), true)
  for (const other of [new Error('other'), null, undefined, 'text', 1]) t.equal(isOfEndedRun(other), false)
})
