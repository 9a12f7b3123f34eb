import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { holds, itemsOf, tell, titlesOf, toUser, url } from './inbox-lab.js'

const at = (second: number): Date => new Date(Date.UTC(2026, 2, 1, 10, 0, second))

test('an inbox is a list of what its user was told, the newest first, with how much of it is new', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, bob] = [await k.as.session('ann'), await k.as.session('bob')]
  t.same((await ann.get(url)).body, { items: [], unread: 0 })
  const audience = toUser(ann.userId)
  await tell(k, { audience, title: 'third', occurredAt: at(3) })
  const id = await tell(k, {
    audience,
    title: 'first',
    body: 'For 3 coins.',
    link: '/items/1',
    occurredAt: at(1)
  })
  await tell(k, { audience, title: 'second', occurredAt: at(2) })
  await holds(ann, 3)
  t.same(await titlesOf(ann), ['third', 'second', 'first'])
  t.same((await itemsOf(ann))[2], {
    id,
    user_id: ann.userId,
    type: 'item.sold',
    title: 'first',
    body: 'For 3 coins.',
    link: '/items/1',
    read: false,
    created_at: '2026-03-01T10:00:01.000Z'
  })

  const paged = await ann.get(`${url}?limit=1&offset=1`)
  t.match(paged.body, { items: [{ title: 'second' }], unread: 3 }, 'unread ignores the page')
  t.equal((await itemsOf(ann, '?limit=1')).length, 1)
  for (const bad of ['?limit=0', '?limit=201', '?limit=x', '?offset=-1'])
    t.equal((await itemsOf(ann, bad)).length, 3, `${bad} is the default`)
  t.same((await ann.get(`${url}/unread-count`)).body, { unread: 3 })
  t.same((await bob.get(url)).body, { items: [], unread: 0 }, 'nobody else has it')
})

test('what was read stays in the list and is not new any more', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const audience = toUser(ann.userId)
  const ids = [await tell(k, { audience, title: 'a' }), await tell(k, { audience, title: 'b' })]
  await tell(k, { audience, title: 'c' })
  await holds(ann, 3)
  const read = await ann.post(`${url}/${ids[0]}/read`)
  t.match(read, { status: 200, body: { id: ids[0], title: 'a', read: true, user_id: ann.userId } })
  t.same((await ann.get(`${url}/unread-count`)).body, { unread: 2 })
  const [before] = await k.query('select read_at from notifications.entry where read_at is not null')
  t.match(await ann.post(`${url}/${ids[0]}/read`), { status: 200, body: { read: true } }, 'again')
  t.same(
    await k.query('select read_at from notifications.entry where read_at is not null'),
    [before],
    'the first time counts'
  )
  t.match(await ann.post(`${url}/read-all`), { status: 204, body: null })
  t.match((await ann.get(url)).body, { items: [{ read: true }, { read: true }, { read: true }], unread: 0 })
  t.equal((await ann.post(`${url}/read-all`)).status, 204, 'with nothing new')
})

test('a notification can be deleted, by its user alone', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [admin, ann] = [await k.as.session(), await k.as.session('ann')]
  const own = await tell(k, { audience: toUser(ann.userId) })
  const shared = await tell(k, { title: 'for admins' })
  await holds(ann, 1)
  await holds(admin, 1)
  const missing = { status: 404, body: { code: 'E_NOT_FOUND', error: 'notification not found' } }
  for (const other of [admin, await k.as.session('bob')]) {
    t.match(await other.delete(`${url}/${own}`), missing)
    t.match(await other.post(`${url}/${own}/read`), missing)
  }
  t.match(await ann.delete(`${url}/${shared}`), missing)
  t.match(await ann.delete(`${url}/${own}`), { status: 200, body: { status: 'deleted' } })
  t.match(await ann.delete(`${url}/${own}`), missing)
  t.match(await ann.post(`${url}/${own}/read`), missing)
  t.same((await ann.get(url)).body, { items: [], unread: 0 })
  await tell(k, { id: own, audience: toUser(ann.userId) })
  await tell(k, { audience: toUser(ann.userId), title: 'another' })
  await holds(ann, 1)
  t.same(await titlesOf(ann), ['another'], 'one that is delivered again does not come back')
})

test('ids are UUIDs, and a token reads with read and marks with write', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const [read, write] = [
    await k.as.token('read', { user: 'ann' }),
    await k.as.token('write', { user: 'ann' })
  ]
  const id = await tell(k, { audience: toUser(ann.userId) })
  await holds(read, 1)
  t.match(await ann.post(`${url}/1/read`), { status: 400 })
  t.match(await ann.delete(`${url}/1`), { status: 400 })
  t.match(await read.post(`${url}/${id}/read`), { status: 403, body: { code: 'E_SCOPE' } })
  t.match(await read.post(`${url}/read-all`), { status: 403, body: { code: 'E_SCOPE' } })
  t.match(await read.delete(`${url}/${id}`), { status: 403, body: { code: 'E_SCOPE' } })
  t.match(await write.post(`${url}/${id}/read`), { status: 200, body: { read: true } })
  t.match(await k.as.anonymous().get(url), { status: 401 })
})

test('administrators see what plugins tell of', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { status, body } = await admin.get('/api/notification-events')
  t.equal(status, 200)
  const types = (body as Array<{ type: string; group: string }>).map(({ type }) => type)
  t.same(types, [
    'account.invitation_accepted',
    'account.new_sign_in',
    'application.crashed',
    'application.unhealthy',
    'certificate.expired',
    'certificate.expiring',
    'database.backup_check_failed',
    'database.backup_failed',
    'database.crashed',
    'database.restore_failed',
    'database.restored',
    'database.upgrade_failed',
    'deployment.failed',
    'deployment.succeeded',
    'tls.expired',
    'tls.expiring',
    'tls.failed',
    'platform.backup_failed',
    'project.member_added',
    'project.member_role_changed',
    'application.volume_backup_check_failed',
    'application.volume_backup_failed',
    'application.volume_restore_failed',
    'application.volume_restored'
  ])
  t.match(
    body.find(({ type }: { type: string }) => type === 'deployment.failed'),
    { label: 'Deployment failed', severity: 'error', group: 'Deployments', description: /\w+ \w+/ }
  )
  t.match(await (await k.as.session('ann')).get('/api/notification-events'), { status: 403 })
  await k.disable('deployments', { cascade: true })
  const left = (await admin.get('/api/notification-events')).body as Array<{ group: string }>
  t.notOk(
    left.some(({ group }) => group === 'Deployments'),
    'what is off tells of nothing'
  )
})
