import { builders } from 'busbar/api/builds'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const password = 'correct horse battery'

async function platform(t: Test, options: Parameters<typeof createTestKernel>[0] = {}) {
  const k = await createTestKernel(options)
  t.teardown(async () => await k.close())
  return k
}

test('before anybody has signed in, everybody is told the name of the instance: Busbar until it has one of its own', async t => {
  const k = await platform(t)
  const features = async () => await k.as.anonymous().get('/api/features')
  t.same((await features()).body, { buildkit_available: true, instance_name: 'Busbar' })
  const email = 'ada@example.com'
  t.equal(
    (await k.as.anonymous().post('/api/auth/setup', { email, password, instance_name: 'Mill' })).status,
    201
  )
  t.match(await features(), { status: 200, body: { instance_name: 'Mill' } })
})

test('features are told to whoever asks, whatever the credential says', async t => {
  const k = await platform(t)
  const credentials = {
    nobody: {},
    'a dead session': { cookie: 'token=busbar_ses_dead' },
    'a dead token': { authorization: 'Bearer busbar_pat_dead' }
  }
  for (const [who, headers] of Object.entries(credentials))
    t.equal((await k.as.anonymous().get('/api/features', { headers })).status, 200, who)
  for (const client of [await k.as.session('member'), await k.as.token('metrics')])
    t.equal((await client.get('/api/features')).status, 200)
})

test('BuildKit is there as long as a builder is that works through it', async t => {
  const k = await platform(t)
  const isThere = async () => (await k.as.anonymous().get('/api/features')).body.buildkit_available
  t.equal(await isThere(), true)
  await k.disable('builds', { cascade: true })
  t.equal(await isThere(), false, 'without any builder')
  await k.enable('builds')
  t.equal(await isThere(), true)
})

test('a builder of another name makes no BuildKit', async t => {
  const other = definePlugin({
    id: 'other',
    contributes(contribute) {
      contribute(builders, 'other', {
        prepare: async () => {
          throw new Error('it builds nothing')
        }
      } as never)
    }
  })
  const k = await platform(t, {
    inline: [{ manifest: { id: 'other', optional: { builds: '^0.1.0' } }, definition: other }]
  })
  await k.disable('builds', { cascade: true })
  t.equal((await k.as.anonymous().get('/api/features')).body.buildkit_available, false)
})

test('who may read hears of a self-update on the channel `platform`, and who may not is refused', async t => {
  const k = await platform(t)
  const project = (await (await k.as.session('ann')).post('/api/projects', { name: 'x', slug: 'x' })).body
  const hearing = await Promise.all([
    k.socket(await k.as.session('member')),
    k.socket(await k.as.token('read')),
    k.socket(await k.as.token('read', { user: 'ann', pins: [project.id] }))
  ])
  for (const socket of hearing) socket.subscribe('platform')
  await until(() => k.hasSubscribers('platform'), 'somebody has subscribed')
  // A refusal is answered after what came before it has been decided.
  for (const socket of hearing) {
    socket.subscribe('nowhere')
    await socket.next(({ channel }) => channel === 'nowhere')
  }
  k.publish('platform', 'update', { updating: true })
  for (const socket of hearing) {
    t.same(await socket.next(({ channel }) => channel === 'platform'), {
      channel: 'platform',
      event: 'update',
      data: { updating: true }
    })
  }
  await t.rejects(k.socket(k.as.anonymous()), /401/)
  await t.rejects(k.socket(await k.as.token('metrics')), /403/)
  for (const socket of hearing) await socket.close()
})

test('while the plugin is off its path says so, its channel is refused, and subscriptions of before hear again once it is back', async t => {
  const k = await platform(t)
  const member = await k.as.session('member')
  const [before, later] = [await k.socket(member), await k.socket(member)]
  before.subscribe('platform')
  await until(() => k.hasSubscribers('platform'), 'a subscription')
  await k.disable('platform')
  t.match(await k.as.anonymous().get('/api/features'), {
    status: 404,
    body: { code: 'E_PLUGIN_OFF', plugin: 'platform' }
  })
  t.equal((await k.as.anonymous().get('/api/version')).status, 200, 'the kernel has its own')
  later.subscribe('platform')
  t.match(await later.next(({ channel }) => channel === 'platform'), { event: 'error' })
  t.notOk(k.hasSubscribers('platform'))
  await k.enable('platform')
  await until(() => k.hasSubscribers('platform'), 'the subscription is awake')
  k.publish('platform', 'update', { updating: false })
  t.match(await before.next(({ event }) => event === 'update'), { data: { updating: false } })
  t.equal((await k.as.anonymous().get('/api/features')).status, 200)
  for (const socket of [before, later]) await socket.close()
})
