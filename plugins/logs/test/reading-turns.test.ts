import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { ReadingTurns } from '../kept/reading-turns.js'

const wait = (
  ms = 10_000,
  signal = new AbortController().signal
): { signal: AbortSignal; until: number } => ({
  signal,
  until: performance.now() + ms
})

/** Work that ends when it is told to. */
function setUp() {
  const turns = new ReadingTurns()
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const step = async (asker: string, name: string, how = wait()) =>
    await turns.step(asker, how, async () => {
      begun.push(name)
      await new Promise<void>(resolve => {
        ends.set(name, resolve)
      })
      return name
    })
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.()
    await turn()
  }
  return { turns, begun, step, end }
}

test('two steps are made at once, of one asker one, and the askers take turns', async t => {
  const { begun, step, end } = setUp()
  const steps = [step('ann', 'a1'), step('ann', 'a2'), step('ann', 'a3'), step('bob', 'b1')]
  steps.push(step('bob', 'b2'), step('cid', 'c1'))
  await turn()
  t.same(begun, ['a1', 'b1'])
  await end('a1')
  t.same(begun, ['a1', 'b1', 'a2'], 'ann has waited longest of those who may')
  await end('b1')
  await end('a2')
  t.same(begun.slice(3), ['b2', 'c1'], 'the third of ann comes behind them')
  await end('b2')
  t.same(begun.slice(5), ['a3'])
  await end('c1')
  await end('a3')
  t.same(await Promise.all(steps), ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'])
})

test('who has waited too long, or has gone, leaves the turn to others', async t => {
  const { begun, step, end } = setUp()
  const first = [step('ann', 'a1'), step('bob', 'b1')]
  const gone = new AbortController()
  const late = step('cid', 'c1', wait(1))
  const left = step('dan', 'd1', wait(10_000, gone.signal))
  const next = step('eve', 'e1')
  t.equal(await late, undefined)
  gone.abort(new Error('the client has gone'))
  await t.rejects(left, { message: 'the client has gone' })
  await t.rejects(step('dan', 'd2', wait(10_000, gone.signal)), { message: 'the client has gone' })
  await end('a1')
  t.same(begun, ['a1', 'b1', 'e1'])
  await end('b1')
  await end('e1')
  t.same(await Promise.all([...first, next]), ['a1', 'b1', 'e1'])
})

test('a step that fails gives its turn back', async t => {
  const { turns, step, end, begun } = setUp()
  for (let n = 0; n < 3; n++)
    await t.rejects(
      turns.step('ann', wait(), async () => await Promise.reject(new Error('the database is away'))),
      { message: 'the database is away' }
    )
  const next = [step('ann', 'a'), step('bob', 'b')]
  await turn()
  t.same(begun, ['a', 'b'])
  await end('a')
  await end('b')
  t.same(await Promise.all(next), ['a', 'b'])
})
