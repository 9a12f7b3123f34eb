import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { EngineHoldings } from '../engines/engine-holdings.js'

/** The engines of two projects, as the Docker Engine and the latest build tell of them. */
function lab(sizes: () => Promise<ReadonlyMap<string, number>>, held: Readonly<Record<string, number>> = {}) {
  const clock = testClock()
  let projectIds = ['one', 'two']
  const holdings = new EngineHoldings({
    engines: { sizes },
    records: {
      all: async () =>
        projectIds.map(projectId => ({ projectId, ownerId: 'a', usedAt: new Date(0), isBusy: false }))
    },
    engineUsage: { heldBy: projectId => held[projectId] },
    clock
  })
  return {
    holdings,
    clock,
    noteGone: (gone: string) => {
      projectIds = projectIds.filter(projectId => projectId !== gone)
    }
  }
}

void test('what the volumes take is what build engines hold', async t => {
  const { holdings } = lab(
    async () =>
      new Map([
        ['one', 5],
        ['of nobody', 7]
      ]),
    { one: 3 }
  )
  t.same(await holdings.read(), [
    { projectId: 'one', bytes: 5 },
    { projectId: 'two', bytes: 0 }
  ])
})

void test('where the engine takes long, what was known last counts, and what is gone does not', async t => {
  let answer = (_sizes: ReadonlyMap<string, number>): void => {}
  let asked = 0
  const { holdings, clock, noteGone } = lab(
    async () => {
      asked++
      return await new Promise(resolve => {
        answer = resolve
      })
    },
    { two: 9 }
  )
  const late = async () => {
    const reading = holdings.read()
    await clock.advance(2000)
    return await reading
  }
  t.same(await late(), [
    { projectId: 'one', bytes: 0 },
    { projectId: 'two', bytes: 9 }
  ])
  await late()
  t.equal(asked, 1, 'one that goes on is shared')
  answer(new Map([['one', 4]]))
  await new Promise(setImmediate)
  t.match(await late(), [{ projectId: 'one', bytes: 4 }, { bytes: 9 }])
  noteGone('two')
  t.same(await late(), [{ projectId: 'one', bytes: 4 }])
})

void test('an engine that does not tell keeps nobody from what is known', async t => {
  const { holdings } = lab(async () => await Promise.reject(new Error('the engine is away')), { one: 3 })
  t.match(await holdings.read(), [{ bytes: 3 }, { bytes: 0 }])
})
