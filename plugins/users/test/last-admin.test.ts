import { identity } from 'busbar/api/identity'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { follow } from '../../account/test/browser.js'

test('two admins who demote or delete each other at the same time, in two processes, leave one', async t => {
  const one = await createTestKernel()
  t.teardown(() => one.close())
  const two = await createTestKernel({ state: one.state })
  t.teardown(() => two.stop())
  const ada = await one.user('admin')
  const users = one.service(identity)
  const browserOf = async (k: TestKernel, account: { email: string; password: string }) => {
    k.resetRateLimits()
    return follow(k, await k.as.anonymous().post('/api/auth/login', account))
  }
  for (let round = 0; round < 6; round++) {
    const account = { email: `bob${round}@example.com`, password: 'bobs password' }
    const bob = await users.createUser({ ...account, role: 'admin' })
    const [asAda, asBob] = [await browserOf(one, ada), await browserOf(two, account)]
    const answers = await Promise.all([
      round % 2 === 0
        ? asAda.put(`/api/users/${bob.id}/role`, { role: 'member' })
        : asAda.delete(`/api/users/${bob.id}`),
      asBob.put(`/api/users/${ada.id}/role`, { role: 'member' })
    ])
    const statuses = answers.map(({ status }) => status)
    t.equal(statuses.filter(status => status === 200).length, 1, `one of them: ${statuses.join(', ')}`)
    t.ok(
      statuses.every(status => [200, 400, 401, 404].includes(status)),
      statuses.join(', ')
    )
    const admins = (await users.listUsers({ limit: 99, offset: 0 })).rows.filter(
      ({ role }) => role === 'admin'
    )
    t.equal(admins.length, 1)
    // Ada again, for the next round.
    await users.changeRole(ada.id, 'admin')
    for (const { id } of admins) if (id !== ada.id) await users.changeRole(id, 'member')
  }
})
