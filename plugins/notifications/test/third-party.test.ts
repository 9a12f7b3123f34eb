import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { installation, routeText } from '../../../test/plugins/third-party-kit.js'
import { holds, itemsOf, makeProject, titlesOf } from './inbox-lab.js'

takeAwayFromEngine()

const declared = (fields = '') => `{
  type: 'x.shop.sold', label: 'Sold', description: 'Something was sold.', group: 'Shop', severity: 'ok',
  audience: { project: 'projectId' }, title: '{item} was sold', link: '/shop/{item}', ${fields}
}`

/** A shop that sells what it is asked for. */
const shop = (notification: string) => `
  needs: { db: kernel.database, events: kernel.events },
  start: ({ use }) => use,
  notifications: notification => { ${notification} },
  routes: route => {
    route({ method: 'POST', url: '/api/x/shop/sell', summary: 's', access: allow.token('write', { project: 'none' }),
      body: 'json', schema: { body: object({ item: Type.Any(), projectId: Type.String() }) },
      handler: async ({ body }, { db, events }) => {
        await db.transaction(async tx => { await events.emit(sold, body, tx) })
        return {}
      } })
  }`
const before = "const sold = event('shop.sold')"

test('a third-party plugin tells users of its events by declaring that', async t => {
  const { k, write, change, admin } = await installation(t)
  const ann = await k.as.session('ann')
  const projectId = await makeProject(ann)
  await write('shop', shop(`notification(sold, ${declared("preference: 'deploy_success'")})`), { before })
  t.equal((await change('shop', 'enable')).status, 200)
  const sell = async (item: unknown) =>
    t.equal((await ann.post('/api/x/shop/sell', { item, projectId })).status, 200)
  await sell('a bike')
  await holds(ann, 1)
  t.match(await itemsOf(ann), [{ type: 'x.shop.sold', title: 'a bike was sold', link: '/shop/a%20bike' }])
  const listed = (await admin.get('/api/notification-events')).body as Array<{ type: string }>
  t.match(
    listed.find(({ type }) => type === 'x.shop.sold'),
    { label: 'Sold', group: 'Shop' },
    'it is in the catalogue'
  )
  await ann.put('/api/account/alert-preferences', { deploy_success: false })
  await sell('another bike')
  await write('shop', shop(`notification(sold, ${declared()})`), { before })
  t.equal((await change('shop', 'reload')).status, 200)
  await sell('a third bike')
  await holds(ann, 2)
  t.same(await titlesOf(ann), ['a third bike was sold', 'a bike was sold'])
  await change('shop', 'disable')
  const kinds = (await admin.get('/api/notification-events')).body as Array<{ type: string }>
  t.notOk(kinds.some(({ type }) => type === 'x.shop.sold'))
})

test('what is wrong with a declaration is said when the plugin is turned on, all of it', async t => {
  const { write, change } = await installation(t)
  const refused = async (notification: string): Promise<string> => {
    await write('shop', shop(notification), { before })
    const { status, body } = await change('shop', 'enable')
    t.equal(status, 409, notification)
    return body.error as string
  }
  t.match(
    await refused(
      `notification(sold, ${declared("type: 'deployment.failed', severity: 'bad', title: '{a b}'")})`
    ),
    /notification deployment\.failed: the types of a third-party plugin begin with x\.shop\..*severity is ok, warn, error.*title has a brace/
  )
  t.match(
    await refused(`notification(event('deployments.finished'), ${declared()})`),
    /it takes an event of the plugin: event\('shop\.…'\)/
  )
  t.match(await refused(`notification(sold, ${declared('audience: () => true')})`), /audience names a field/)
  t.match(await refused("throw new Error('not today')"), /notifications: not today/)
  await write('shop', shop('').replace('notification => {  }', "'none'"), { before })
  t.match((await change('shop', 'enable')).body.error, /notifications is not a function/)
})

test('an event without what its words name is told as far as it goes, and the test kit says so', async t => {
  const { k, write, change } = await installation(t)
  const ann = await k.as.session('ann')
  const projectId = await makeProject(ann)
  await write('shop', shop(`notification(sold, ${declared()})`), { before })
  await change('shop', 'enable')
  t.equal((await ann.post('/api/x/shop/sell', { item: ['a list'], projectId })).status, 200)
  t.equal((await ann.post('/api/x/shop/sell', { item: 'a bike', projectId: 'nowhere' })).status, 200)
  await holds(ann, 1)
  t.same(await titlesOf(ann), ['was sold'])
  t.same(k.notificationFaults(), [
    'the notification "x.shop.sold" of the plugin "shop": its event has neither text nor number in "item", which its words name',
    'the notification "x.shop.sold" of the plugin "shop": its event has no id in "projectId", so nobody is told'
  ])
})

test('a third-party plugin can listen to what all plugins tell, to send it on', async t => {
  const { k, write, change } = await installation(t)
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  await write(
    'chat',
    `start: () => ({ said: [] }),
    events: on => on.notification((raised, self) => { self.said.push(raised) }),
    routes: route => { ${routeText('chat', 'said', '(_request, { said }) => said')} }`
  )
  t.equal((await change('chat', 'enable')).status, 200)
  const project = await makeProject(ann)
  await ann.put(`/api/projects/${project}/members`, { email: (await k.user('vic')).email, role: 'viewer' })
  const said = await until(async () => {
    const { body } = await ann.get('/api/x/chat/said')
    return body.length === 1 ? body : undefined
  }, 'it was heard')
  const [inInbox] = await holds(vic, 1)
  t.match(said, [
    {
      id: inInbox?.id,
      type: 'project.member_added',
      title: 'You are a member of shop',
      severity: 'ok',
      preference: null,
      audience: { kind: 'user', userId: vic.userId, projectId: project },
      link: `/projects/${project}`,
      occurredAt: inInbox?.created_at
    }
  ])
})
