import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { ReadTurns } from '../read/read-turns.js'

test('three read at once, each asker one, and who has gone is passed over', async t => {
  const turns = new ReadTurns()
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const read = (asker: string, name: string, signal = new AbortController().signal): Promise<string> =>
    turns.take(asker, signal, async () => {
      begun.push(name)
      await new Promise<void>(resolve => ends.set(name, resolve))
      return name
    })
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.()
    await turn()
  }
  const gone = new AbortController()
  const reads = [read('ann', 'a1'), read('ann', 'a2'), read('bob', 'b1'), read('cid', 'c1')]
  const left = t.rejects(read('dan', 'd1', gone.signal))
  reads.push(read('eve', 'e1'))
  await turn()
  t.same(begun, ['a1', 'b1', 'c1'])
  gone.abort(new Error('the client has gone'))
  await end('b1')
  await left
  t.same(begun, ['a1', 'b1', 'c1', 'e1'])
  await end('a1')
  t.same(begun.at(-1), 'a2')
  for (const name of ['a2', 'c1', 'e1']) await end(name)
  t.same((await Promise.all(reads)).sort(), ['a1', 'a2', 'b1', 'c1', 'e1'])
  const failing = turns.take('ann', new AbortController().signal, async () => {
    throw new Error('no database')
  })
  await t.rejects(failing, /no database/)
  const next = read('ann', 'a3')
  await turn()
  t.equal(begun.at(-1), 'a3', 'what fails gives its turn back')
  await end('a3')
  await next
})
