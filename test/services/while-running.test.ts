import { test } from 'tap'
import type { PluginServices } from '../../core/services/container.js'
import { isOfEndedRun, RunEnd, whileRunning } from '../../core/services/while-running.js'

test('services of a run that has ended refuse, but for the time', async t => {
  const end = new RunEnd()
  let stopped = 0
  const given = {
    clock: {
      now: () => 1,
      elapsed: () => 6,
      sleep: async () => 2,
      every: (_ms: number, _run: () => void) => () => stopped++
    },
    database: { sql: async () => 3, statement: () => async () => 4, name: 'text' },
    bus: { publish: () => 5 }
  }
  const { clock, database, bus } = whileRunning(
    'a',
    given as unknown as PluginServices,
    end
  ) as unknown as typeof given
  const run = database.statement()
  const every = () => clock.every(1, () => {})
  every()
  t.same(
    [clock.now(), await clock.sleep(), await database.sql(), await run(), bus.publish()],
    [1, 2, 3, 4, 5]
  )
  t.equal(database.name, 'text')
  t.ok(Object.isFrozen(clock))
  end.come()
  t.equal(stopped, 1)
  t.same([clock.now(), clock.elapsed(), await clock.sleep()], [1, 6, 2])
  const refused = { status: 503, code: 'E_PLUGIN_OFF', details: { plugin: 'a' } }
  await t.rejects(database.sql(), refused)
  await t.rejects(run(), refused)
  for (const call of [bus.publish, every, database.statement]) t.throws(call, refused)
  t.equal(isOfEndedRun(await database.sql().catch((error: unknown) => error)), true)
  for (const other of [new Error('other'), null, undefined, 'text', 1]) t.equal(isOfEndedRun(other), false)
})

test('where a function is taken, anything else is refused at once', async t => {
  const calls: string[] = []
  const noted = (name: string) => () => {
    calls.push(name)
    return () => {}
  }
  const given = {
    database: { transaction: async () => calls.push('transaction'), afterCommit: noted('afterCommit') },
    clock: { every: noted('every') },
    bus: { onSignal: noted('onSignal') }
  }
  type Any = Readonly<Record<string, Readonly<Record<string, (...args: unknown[]) => unknown>>>>
  const services = whileRunning('a', given as unknown as PluginServices, new RunEnd()) as unknown as Any
  await t.rejects(services.database?.transaction?.(5) as Promise<unknown>, {
    name: 'TypeError',
    message: 'transaction takes a function as its first argument; it got a number'
  })
  t.throws(() => services.database?.afterCommit?.({}, undefined), {
    message: 'afterCommit takes a function as its second argument; it got undefined'
  })
  t.throws(() => services.clock?.every?.(5, 'text'), { message: /^every takes .* it got a text$/ })
  t.throws(() => services.bus?.onSignal?.('go', {}), { message: /^onSignal takes .* it got an object$/ })
  t.same(calls, [])
  const run = () => {}
  await services.database?.transaction?.(run)
  services.database?.afterCommit?.({}, run)
  services.clock?.every?.(5, run)
  services.bus?.onSignal?.('go', run)
  t.same(calls, ['transaction', 'afterCommit', 'every', 'onSignal'])
})
