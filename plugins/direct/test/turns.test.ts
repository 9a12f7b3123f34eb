import { test } from 'tap'
import { createTurns } from '../turns.js'

test('work on one key is done in order, also after one that failed, and that on another key does not wait', async t => {
  const turns = createTurns()
  const seen: string[] = []
  let open = (): void => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  const first = turns.take('a', async () => {
    await opened
    seen.push('first')
    throw new Error('as it is meant to')
  })
  const second = turns.take('a', async () => {
    seen.push('second')
    return 2
  })
  t.equal(await turns.take('b', async () => 'another key'), 'another key')
  t.same(seen, [])
  open()
  await t.rejects(first, { message: 'as it is meant to' })
  t.equal(await second, 2, 'a failure is its own')
  t.same(seen, ['first', 'second'])
  t.equal(await turns.take('a', async () => 3), 3)
})
