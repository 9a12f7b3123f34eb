import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import type { KeptChunk } from '../kept/log-store.js'
import { StreamReads } from '../kept/stream-reads.js'

/** A store that answers when it is told to. */
function setUp() {
  const asked: string[] = []
  const answers: Array<(chunks: KeptChunk[]) => void> = []
  const reads = new StreamReads({
    after: async (sourceId, { from }) => {
      asked.push(`${sourceId} ${from}`)
      return await new Promise(resolve => {
        answers.push(resolve)
      })
    }
  })
  const answer = async (): Promise<void> => {
    answers.shift()?.([])
    await turn()
  }
  return { asked, answer, reads }
}

test('streams that want the same piece share it', async t => {
  const { asked, answer, reads } = setUp()
  const wanted = Array.from({ length: 1000 }, () => reads.after('s', { from: 5 }, 100))
  await turn()
  t.same(asked, ['s 5'])
  await answer()
  const [first, ...others] = await Promise.all(wanted)
  t.ok(others.every(piece => piece === first))
  void reads.after('s', { from: 5 }, 100)
  await turn()
  t.same(asked, ['s 5', 's 5'], 'and it is read again by who comes later')
})

test('of one source one piece is read at a time, and two in all', async t => {
  const { asked, answer, reads } = setUp()
  for (const [id, from] of [
    ['s', 1],
    ['s', 2],
    ['r', 1],
    ['q', 1]
  ] as const)
    void reads.after(id, { from }, 100)
  await turn()
  t.same(asked, ['s 1', 'r 1'])
  await answer()
  t.same(asked.slice(2), ['s 2'])
  await answer()
  t.same(asked.slice(3), ['q 1'])
})

test('what cannot be read is told to all who wanted it, and can be asked for again', async t => {
  let isAway = true
  const reads = new StreamReads({
    after: async () => (isAway ? await Promise.reject(new Error('away')) : [])
  })
  const wanted = Array.from({ length: 3 }, () => reads.after('s', { from: 0 }, 100))
  for (const piece of wanted) await t.rejects(piece, { message: 'away' })
  isAway = false
  t.same(await reads.after('s', { from: 0 }, 100), [])
})
