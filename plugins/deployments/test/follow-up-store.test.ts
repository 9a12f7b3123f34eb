import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { FollowUpStore } from '../queue/follow-up-store.js'

test('of a follow-up the last trigger counts, and it is taken once', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'x', slug: 'x' })
  const { body: application } = await ann.post(`/api/projects/${project.id}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const db = k.database('deployments')
  const followUps = new FollowUpStore(db)
  const put = async (trigger: 'push' | 'hook'): Promise<void> => {
    await db.transaction(async tx => await followUps.put(application.id, trigger, new Date(), tx))
  }
  const take = async () => await db.transaction(async tx => await followUps.take(application.id, tx))
  await put('push')
  await put('hook')
  t.equal(await take(), 'hook')
  t.equal(await take(), undefined)
  await put('push')
  t.equal(await take(), 'push', 'a later one knows nothing of the one before')
})
