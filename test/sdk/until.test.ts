import { test } from 'tap'
import { until } from '../../sdk/testing/until.js'

test('a wait resolves with the first answer that is one', async t => {
  const answers = [undefined, null, false, 0]
  t.equal(await until(() => answers.shift(), 'an answer'), 0)
  t.equal(await until(async () => 'here', 'an answer'), 'here')
})

test('a wait that is in vain fails with what it waited for', async t => {
  await t.rejects(
    until(() => false, 'the moon is made of cheese', 50),
    {
      message: 'waited 50 ms in vain: the moon is made of cheese'
    }
  )
})

test('a wait fails with what its probe throws', async t => {
  await t.rejects(
    until(() => {
      throw new Error('no such row')
    }, 'the row is written'),
    { message: 'no such row' }
  )
})

test('a probe that never answers does not hold up a wait for ever', async t => {
  await t.rejects(
    until(() => new Promise<boolean>(() => {}), 'the engine is back', 50),
    { message: /"the engine is back" did not answer within/ }
  )
})
