import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import {
  addMember,
  delivered,
  holds,
  makeProject,
  tell,
  titlesOf,
  toProject,
  toUser,
  url
} from './inbox-lab.js'

takeAwayFromEngine()

test('a project is told to its owner and its members, and to nobody else who may see it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [admin, ann, vic, ed, sue] = [
    await k.as.session(),
    await k.as.session('ann'),
    await k.as.session('vic'),
    await k.as.session('ed'),
    await k.as.session('sue')
  ]
  const project = await makeProject(ann)
  await k.disable('notifications')
  await addMember(k, ann, project, 'vic', 'viewer')
  await addMember(k, ann, project, 'ed', 'editor')
  await k.enable('notifications')
  await ann.put(`/api/projects/${project}/sharing`, { shared: true })
  await tell(k, { audience: toProject(project), title: 'It is built' })
  for (const client of [ann, vic, ed]) await holds(client, 1)
  for (const client of [admin, sue]) t.same(await titlesOf(client), [])
  await tell(k, { audience: toProject(project), title: 'Before vic came', occurredAt: new Date(0) })
  await holds(ann, 2)
  t.same(await titlesOf(vic), ['It is built'], 'a member is told of what happened since they are one')
})

test('who loses a project sees nothing of it any more, and has it again with the project', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  const project = await makeProject(ann)
  await addMember(k, ann, project, 'vic')
  const [added] = await holds(vic, 1)
  t.match(added, { type: 'project.member_added', title: 'You are a member of shop' })
  const id = await tell(k, { audience: toProject(project), title: 'Of the project' })
  await tell(k, { audience: toUser(vic.userId), title: 'Of the account' })
  await holds(vic, 3)
  await ann.delete(`/api/projects/${project}/members/${vic.userId ?? ''}`)
  t.same(await titlesOf(vic), ['Of the account'])
  t.same((await vic.get(`${url}/unread-count`)).body, { unread: 1 })
  t.match(await vic.post(`${url}/${id}/read`), { status: 404 })
  t.match(await vic.delete(`${url}/${id}`), { status: 404 })
  t.equal((await vic.post(`${url}/read-all`)).status, 204)
  await tell(k, { audience: toProject(project), title: 'When vic was gone' })
  await holds(ann, 2)
  await addMember(k, ann, project, 'vic')
  await until(async () => (await titlesOf(vic)).length === 4, 'vic is told to be a member again')
  t.same((await titlesOf(vic)).slice(1), ['Of the account', 'Of the project', 'You are a member of shop'])
  t.match((await vic.get(`${url}/unread-count`)).body, { unread: 3 }, 'what could not be seen was not read')
})

test('what is for administrators is seen as long as one is one', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [admin, ann] = [await k.as.session(), await k.as.session('ann')]
  const setRole = async (role: string) =>
    t.equal((await admin.put(`/api/users/${ann.userId ?? ''}/role`, { role })).status, 200)
  await setRole('admin')
  const token = await k.as.token('read', { user: 'ben' })
  await tell(k, { title: 'The certificate expires' })
  await holds(admin, 1)
  const { email, password } = await k.user('ann')
  const login = async () => {
    k.resetRateLimits()
    const { status, headers } = await k.as.anonymous().post('/api/auth/login', { email, password })
    t.equal(status, 200)
    const cookies = (headers['set-cookie'] ?? []).map(line => line.split(';')[0] ?? '')
    return { cookie: cookies.join('; ') }
  }
  const listed = async () =>
    (
      (await k.as.anonymous().get(url, { headers: await login() })).body.items as Array<{ title: string }>
    ).map(({ title }) => title)
  t.same(await listed(), ['The certificate expires'])
  t.same(await titlesOf(token), [])
  await setRole('member')
  t.same(await listed(), [])
  await setRole('admin')
  t.same(await listed(), ['The certificate expires'])
})

test('a pinned token sees what is in its projects, and marks that alone', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const [shop, bank] = [await makeProject(ann, 'shop'), await makeProject(ann, 'bank')]
  const pinned = await k.as.token('write', { user: 'ann', pins: [shop] })
  const ofBank = await tell(k, { audience: toProject(bank), title: 'Of the bank' })
  const ofShop = await tell(k, { audience: toProject(shop), title: 'Of the shop' })
  const own = await tell(k, { audience: toUser(ann.userId), title: 'Of the account' })
  await holds(ann, 3)
  t.same(await titlesOf(pinned), ['Of the shop'])
  t.same((await pinned.get(`${url}/unread-count`)).body, { unread: 1 })
  for (const id of [ofBank, own]) {
    t.match(await pinned.post(`${url}/${id}/read`), { status: 404 })
    t.match(await pinned.delete(`${url}/${id}`), { status: 404 })
  }
  t.equal((await pinned.post(`${url}/read-all`)).status, 204)
  t.same((await ann.get(`${url}/unread-count`)).body, { unread: 2 })
  t.match(await pinned.delete(`${url}/${ofShop}`), { status: 200 })
})

test('a project that is removed takes what it told along, also while the plugin is off', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const [shop, bank] = [await makeProject(ann, 'shop'), await makeProject(ann, 'bank')]
  for (const project of [shop, bank]) await tell(k, { audience: toProject(project), title: 'Built' })
  await tell(k, { audience: toUser(ann.userId), title: 'Of the account' })
  await holds(ann, 3)
  await ann.delete(`/api/projects/${shop}`)
  t.same((await titlesOf(ann)).sort(), ['Built', 'Of the account'], 'at once')
  await k.disable('notifications')
  await ann.delete(`/api/projects/${bank}`)
  await k.runRemovalsNow()
  await until(async () => (await k.query('select 1 from projects.project')).length === 0, 'both are gone')
  t.same(await k.query('select title from notifications.notice'), [{ title: 'Of the account' }])
  t.equal((await k.query('select 1 from notifications.entry')).length, 1)
  await k.enable('notifications')
  await tell(k, { audience: toProject(shop), title: 'Too late' })
  await tell(k, { audience: toUser(ann.userId, shop), title: 'Too late for ann' })
  await delivered(k)
  t.same(await titlesOf(ann), ['Of the account'])
})

test('an inbox goes with its user', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [admin, ann] = [await k.as.session(), await k.as.session('ann')]
  await tell(k, { audience: toUser(ann.userId) })
  await holds(ann, 1)
  t.equal((await admin.delete(`/api/users/${ann.userId ?? ''}`)).status, 200)
  t.same(await k.query('select 1 from notifications.inbox'), [])
  t.same(await k.query('select 1 from notifications.entry'), [])
  await tell(k, { audience: toUser(ann.userId) })
  await delivered(k)
  t.same(await k.query('select 1 from notifications.entry'), [], 'who is gone is not told')
})
