import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { createKeyedMutex } from '../../sdk/keyed-mutex.js'

test('work on one key is done in order, also after one that failed, and that on another key does not wait', async t => {
  const mutex = createKeyedMutex()
  const seen: string[] = []
  let open = (): void => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  const first = mutex.take('a', async () => {
    await opened
    seen.push('first')
    throw new Error('as it is meant to')
  })
  const second = mutex.take('a', async () => {
    seen.push('second')
    return 2
  })
  t.equal(await mutex.take('b', async () => 'another key'), 'another key')
  t.same(seen, [])
  open()
  await t.rejects(first, { message: 'as it is meant to' })
  t.equal(await second, 2, 'a failure is its own')
  t.same(seen, ['first', 'second'])
  t.equal(await mutex.take('a', async () => 3), 3)
})

test('what comes while the last of several runs waits for it', async t => {
  const mutex = createKeyedMutex()
  const seen: string[] = []
  let open = (): void => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  const first = mutex.take('a', async () => {
    seen.push('first')
  })
  const second = mutex.take('a', async () => {
    await opened
    seen.push('second')
  })
  await first
  await setImmediate()
  const third = mutex.take('a', async () => {
    seen.push('third')
  })
  await setImmediate()
  t.same(seen, ['first'])
  open()
  await Promise.all([second, third])
  t.same(seen, ['first', 'second', 'third'])
})
