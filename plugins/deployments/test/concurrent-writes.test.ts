import { test } from 'tap'
import { ConcurrentWrites } from '../rollout/concurrent-writes.js'

test('writes are done in their order, and waited for', async t => {
  const writes = new ConcurrentWrites()
  await writes.done()
  const done: number[] = []
  for (const [number, turns] of [
    [1, 5],
    [2, 0]
  ] as const)
    writes.add(async () => {
      for (let n = 0; n < turns; n++) await Promise.resolve()
      done.push(number)
    })
  t.same(done, [])
  await writes.done()
  t.same(done, [1, 2])
  t.equal(writes.failed.aborted, false)
})

test('a write that fails ends the work beside it, and none comes after it', async t => {
  const writes = new ConcurrentWrites()
  const away = new Error('the database is away')
  let isWritten = false
  writes.add(async () => await Promise.reject(away))
  writes.add(async () => {
    isWritten = true
  })
  await t.rejects(writes.done(), { message: away.message })
  t.equal(writes.failed.reason, away)
  writes.add(async () => {
    isWritten = true
  })
  await t.rejects(writes.done(), { message: away.message })
  t.equal(isWritten, false)
})
