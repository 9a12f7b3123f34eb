import { test } from 'tap'
import { isParamOf, paramOf, wordsOf } from '../../core/declarations/resource-kinds.js'
import { heldRemedy, tableHolding } from '../../core/resources/held-row.js'
import { roundDelayMs } from '../../core/resources/resource-removals.js'
import { askPlugin, dependantsFirst, runAll } from '../../core/resources/teardown-steps.js'

test('rounds of a removal are 5 seconds apart at first and 5 minutes at most', async t => {
  t.same([0, 1, 2, 5, 6, 1000].map(roundDelayMs), [5_000, 10_000, 20_000, 160_000, 300_000, 300_000])
})

test('steps of plugins that depend on others come first, whatever order they were contributed in', async t => {
  const steps = ['ground', 'top', 'middle', 'top'].map((plugin, at) => ({ plugin, at }))
  t.same(
    dependantsFirst(steps, ['ground', 'middle', 'top']).map(({ plugin, at }) => `${plugin} ${at}`),
    ['top 1', 'top 3', 'middle 2', 'ground 0'],
    'those of one plugin as they were'
  )
})

test('a step that fails keeps no other from its work, and the first failure is told', async t => {
  const seen: string[] = []
  const step = (name: string, error?: Error) => ({
    plugin: name,
    run: async () => {
      seen.push(name)
      if (error !== undefined) throw error
    }
  })
  const signal = new AbortController().signal
  await t.rejects(runAll([step('a', new Error('one')), step('b', new Error('two')), step('c')], signal), {
    message: 'one'
  })
  t.same(seen, ['a', 'b', 'c'])
})

test('a path parameter is called after the kind whose id it holds', async t => {
  t.equal(paramOf('application'), 'applicationId')
  t.equal(paramOf('deploy_hook'), 'deployHookId')
  t.ok(isParamOf('application', 'parentApplicationId'))
  t.notOk(isParamOf('application', 'applicationIds'))
  t.notOk(isParamOf('application', 'id'))
  t.equal(wordsOf('deploy_hook'), 'deploy hook')
})

test('a row that is held is known by the table that refers to it, and what helps names its plugin', async t => {
  t.equal(tableHolding({ code: '23503', schema: 'x_my_notes', table: 'note' }), 'x_my_notes.note')
  t.equal(tableHolding({ code: '23001', schema: 'builds', table: 'image' }), 'builds.image')
  t.equal(tableHolding({ code: '23505', schema: 'builds', table: 'image' }), null)
  for (const nothing of [null, undefined, 'text', new Error('other')]) t.equal(tableHolding(nothing), null)
  t.match(heldRemedy('x_my_notes.note'), /enable the plugin "my-notes".*\/api\/plugins\/my-notes\/purge/)
})

test('a step of a plugin has five minutes, or what it is given', async t => {
  const { setTimeout: real } = globalThis
  t.teardown(() => {
    globalThis.setTimeout = real
  })
  const limits: unknown[] = []
  globalThis.setTimeout = ((act: () => void, ms: number) => {
    limits.push(ms)
    setImmediate(act)
  }) as unknown as typeof setTimeout
  const ask = { plugin: 'a', step: 'the teardown', signal: new AbortController().signal }
  const hang = async (): Promise<void> => await new Promise(() => {})
  await t.rejects(askPlugin(ask, hang), {
    message: 'the teardown of the plugin "a" did not end within 300 s'
  })
  await t.rejects(askPlugin({ ...ask, ms: 20_000 }, hang), { message: /within 20 s/ })
  t.same(limits, [300_000, 300_000, 20_000, 20_000])
})
