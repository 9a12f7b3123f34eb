import type { HappyCalls, HappyFixture } from 'busbar/sdk/testing'
import { until } from 'busbar/sdk/testing'
import { itemsOf, tell, toUser } from './inbox-lab.js'

/** One that has just come into the admin's inbox. */
async function fresh({ k, admin }: HappyFixture): Promise<{ notificationId: string }> {
  const notificationId = await tell(k, { audience: toUser(admin.userId) })
  await until(async () => {
    k.resetRateLimits()
    return (await itemsOf(admin, '?limit=200')).some(({ id }) => id === notificationId)
  }, 'it was delivered')
  return { notificationId }
}

export const happyCalls: HappyCalls = {
  'POST /api/notifications/{notificationId}/read': async fixture => ({ ids: await fresh(fixture) }),
  'POST /api/notifications/read-all': () => ({ expect: 204 }),
  'DELETE /api/notifications/{notificationId}': async fixture => ({ ids: await fresh(fixture) })
}
