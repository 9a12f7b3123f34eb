import { reply } from 'busbar/sdk'
import { test } from 'tap'

test('an answer has a status that ends it', async t => {
  for (const status of [100, 101, 103, 199, 600, Number.NaN, 200.5, '200'])
    t.throws(() => reply(status as number, null), {
      message: /the status of an answer is a number from 200 to 599/
    })
  for (const status of [200, 204, 404, 599]) t.match(reply(status, null), { status })
})
