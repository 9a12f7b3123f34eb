import { until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import type { EngineClient } from '../engine-client.js'
import { MachineLimits } from '../host/machine-limits.js'

/** Limits of a machine whose engine answers nothing before it is let; how often it was asked. */
function machine() {
  const state = { asked: 0, answer: (): void => {} }
  const isLet = new Promise<void>(resolve => {
    state.answer = resolve
  })
  const engine = {
    call: async () => {
      state.asked++
      await isLet
      throw new Error('it is away')
    }
  } as unknown as EngineClient
  const limits = new MachineLimits({
    engine,
    instanceId: 'a',
    log: pino({ level: 'silent' }),
    projects: async () => await engine.call('list projects', async () => [])
  } as unknown as ConstructorParameters<typeof MachineLimits>[0])
  return { state, limits }
}

test('limits are stopped when what is under way has ended, and nothing is begun any more', async t => {
  const { state, limits } = machine()
  const refreshed = limits.refresh().catch(() => {})
  await until(() => state.asked > 0, 'it has begun')
  let isStopped = false
  const stopped = limits.stop().then(() => {
    isStopped = true
  })
  await new Promise(resolve => setImmediate(resolve))
  t.equal(state.asked, 1)
  t.notOk(isStopped, 'it waits')
  state.answer()
  await Promise.all([refreshed, stopped])
  const asked = state.asked
  await limits.refresh()
  await t.rejects(limits.ensure('p'), { message: 'the platform is stopping' })
  t.equal(state.asked, asked)
})
