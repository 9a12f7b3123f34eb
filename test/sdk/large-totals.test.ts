import { LargeTotals } from 'busbar/sdk'
import { test } from 'tap'

const minute = 60_000

/** A list whose rows can be counted, and how often that was done. */
function list(rows: number) {
  const state = { rows, counted: 0, now: 0 }
  const totals = new LargeTotals({ elapsed: () => state.now })
  const count = async () => {
    state.counted++
    return [{ total: state.rows }]
  }
  const total = async (key = 'all'): Promise<number | undefined> => (await totals.of(key, count))[0]?.total
  return { state, totals, total }
}

/** Until what is counted in the background is known. */
const turn = async (): Promise<void> => await new Promise(resolve => setImmediate(resolve))

test('up to 10 000 rows are counted each time, and exactly', async t => {
  const { state, total } = list(9_999)
  t.equal(await total(), 9_999)
  state.rows = 10_000
  t.equal(await total(), 10_000)
  state.rows = 3
  t.equal(await total(), 3)
})

test('more are counted once in half a minute, however many ask at once, each list for itself', async t => {
  const { state, total } = list(1_000_000)
  t.same(await Promise.all([total(), total(), total()]), [1_000_000, 1_000_000, 1_000_000])
  t.equal(state.counted, 1)
  state.rows = 1_000_001
  state.now = 30_000
  t.equal(await total(), 1_000_000)
  t.equal(await total('of somebody else'), 1_000_001)
  t.equal(state.counted, 2)
})

test('who asks later gets what is known, and the next one what was counted meanwhile', async t => {
  const { state, total } = list(20_000)
  await total()
  state.rows = 4
  state.now = minute
  t.equal(await total(), 20_000)
  await turn()
  t.equal(await total(), 4, 'what has become few is forgotten, and exact again')
  state.rows = 5
  t.equal(await total(), 5)
})

test('what is older than five minutes is not told any more', async t => {
  const { state, total } = list(20_000)
  await total()
  state.rows = 30_000
  state.now = 5 * minute + 1
  t.equal(await total(), 30_000)
})

test('a count that fails is told to who waits for it, and to nobody who does not', async t => {
  const state = { now: 0, isAway: false }
  const totals = new LargeTotals({ elapsed: () => state.now })
  const count = async () => {
    if (state.isAway) throw new Error('the database is away')
    return [{ total: 50_000 }]
  }
  await totals.of('all', count)
  state.isAway = true
  state.now = minute
  t.same(await totals.of('all', count), [{ total: 50_000 }])
  await turn()
  t.same(await totals.of('all', count), [{ total: 50_000 }], 'what was known is known')
  await t.rejects(totals.of('other', count), { message: 'the database is away' })
  state.isAway = false
  t.same(await totals.of('other', count), [{ total: 50_000 }])
})

test('of many lists those that were counted last are remembered', async t => {
  const { state, total } = list(20_000)
  for (let n = 0; n <= 200; n++) await total(String(n))
  t.equal(state.counted, 201)
  await total('200')
  t.equal(state.counted, 201)
  await total('0')
  t.equal(state.counted, 202)
})
