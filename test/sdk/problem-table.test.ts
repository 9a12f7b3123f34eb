import { problemTable } from 'busbar/sdk'
import { test } from 'tap'

test('a problem is a failure: no other status is taken', async t => {
  for (const status of [0, 200, 399, 600, 404.5, Number.NaN])
    t.throws(
      () => problemTable({ missing: [status, 'E_TEA_MISSING', 'there is no tea'] }),
      {
        name: 'RangeError',
        message: `the status of the problem missing (E_TEA_MISSING) must be 400 to 599, not ${status}`
      },
      String(status)
    )
  for (const status of [400, 599])
    t.match(problemTable({ missing: [status, 'E_TEA_MISSING', 'there is no tea'] }).missing(), { status })
})
