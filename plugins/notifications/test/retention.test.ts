import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { holds, tell, titlesOf, toUser } from './inbox-lab.js'

const day = 86_400_000

test('a notification is kept for as many days as the setting says', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const aged = (days: number): Date => new Date(Date.now() - days * day)
  const audience = toUser(ann.userId)
  await tell(k, { audience, title: 'of 91 days ago', occurredAt: aged(91) })
  await tell(k, { audience, title: 'of 89 days ago', occurredAt: aged(89) })
  await tell(k, { audience, title: 'of today' })
  await holds(ann, 3)
  await k.configure('notifications', { retention_days: 90 })
  await holds(ann, 2)
  t.same(await titlesOf(ann), ['of today', 'of 89 days ago'])
  await k.configure('notifications', { retention_days: 30 })
  await holds(ann, 1)
  await until(
    async () => (await k.query('select 1 from notifications.notice')).length === 1,
    'nothing of it is left'
  )
  t.same(
    await k.query(
      'select n.title from notifications.entry e join notifications.notice n on n.id = e.notice_id'
    ),
    [{ title: 'of today' }]
  )
})

test('what is in no inbox any more is not kept, however long notifications are', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  await k.configure('notifications', { retention_days: 0 })
  const ann = await k.as.session('ann')
  const audience = toUser(ann.userId)
  const occurredAt = new Date(Date.now() - 2 * day)
  for (const title of ['deleted', 'kept']) await tell(k, { audience, title, occurredAt })
  await tell(k, { audience, title: 'deleted today' })
  for (const { id, title } of await holds(ann, 3))
    if (title !== 'kept') t.equal((await ann.delete(`/api/notifications/${id}`)).status, 200)
  await k.reload('notifications')
  await until(
    async () => (await k.query("select 1 from notifications.notice where title = 'deleted'")).length === 0,
    'it is gone'
  )
  t.same(await k.query('select title from notifications.notice order by title'), [
    { title: 'deleted today' },
    { title: 'kept' }
  ])
  t.same(await titlesOf(ann), ['kept'])
})
