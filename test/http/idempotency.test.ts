import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a key whose first request was answered 503 for its time does not run the work twice', async t => {
  let runs = 0
  const slow = definePlugin({
    id: 'slow',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/slow',
        summary: 'Work Slowly',
        access: allow.session({ project: 'none' }),
        idempotent: true,
        timeoutMs: 200,
        handler: async () => {
          runs++
          await sleep(1000)
          return { runs }
        }
      })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'slow' }, definition: slow }] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const headers = { 'idempotency-key': 'one' }
  t.match(await admin.post('/api/slow', {}, { headers }), { status: 503, body: { code: 'E_TIMEOUT' } })
  t.match(await admin.post('/api/slow', {}, { headers }), {
    status: 409,
    body: { code: 'E_IDEMPOTENCY_IN_PROGRESS' }
  })
  t.equal(runs, 1)
})
