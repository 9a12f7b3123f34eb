import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { channel, foreignId, knownId, startHub } from './hub-kit.js'

const logs = channel('logs:{applicationId}')
const [mine, other] = [`logs:${knownId}`, `logs:${foreignId}`]

test('a subscription ends with the words of a refusal when its channel may not be heard any more, and others go on', async t => {
  const lost = new Set<string>()
  const kit = await startHub({ authorize: async (_, id, { user }) => !lost.has(`${user.id} ${id}`) })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const [ann, bob] = [await kit.connect('ann'), await kit.connect('bob')]
  for (const client of [ann, bob]) await client.subscribe(mine, other)
  lost.add(`ann ${knownId}`)
  kit.hub.recheck()
  t.same(await ann.received(1), [{ channel: mine, event: 'error', data: { error: 'access denied' } }])
  kit.hub.publish(mine, 'log', 1)
  kit.hub.publish(other, 'log', 2)
  t.same(
    (await bob.received(2)).map(({ data }) => data),
    [1, 2]
  )
  t.same((await ann.received(2)).slice(1), [{ channel: other, event: 'log', data: 2 }])
  kit.hub.recheck()
  await ann.settled()
  t.equal(ann.frames.length, 2, 'said once')
})

test('a subscribe that was decided on what is no longer so is decided again', async t => {
  let isAllowed = true
  let asked = 0
  let go: () => void = () => {}
  const kit = await startHub({
    authorize: async () => {
      const answer = isAllowed
      if (++asked === 1)
        await new Promise<void>(resolve => {
          go = resolve
        })
      return answer
    }
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const client = await kit.connect()
  client.socket.send(JSON.stringify({ action: 'subscribe', channel: mine }))
  await until(() => asked > 0, 'it is asked who may hear the channel')
  isAllowed = false
  kit.hub.recheck()
  go()
  t.match(await client.received(1), [{ event: 'error' }])
  t.equal(kit.hub.hasSubscribers(mine), false)
})

test('where it cannot be decided the socket is closed: a client that comes back asks for everything again', async t => {
  let isBroken = false
  const kit = await startHub({
    authorize: async () => {
      if (isBroken) throw new Error('no database')
      return true
    }
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const client = await kit.connect()
  await client.subscribe(mine, other)
  isBroken = true
  kit.hub.recheck()
  t.same(await client.closed, { code: 1011, reason: 'access could not be decided' })
  t.equal(kit.hub.hasSubscribers(mine), false)
  t.match(kit.logged[0], { msg: 'access to a channel could not be decided' })
})

test('subscriptions of a plugin that is off are kept, and asked for when it is back', async t => {
  let isAllowed = true
  const kit = await startHub({ authorize: async () => isAllowed })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const client = await kit.connect()
  await client.subscribe(mine)
  kit.hub.removeChannels('demo')
  kit.hub.recheck()
  await client.settled()
  t.same(client.frames, [])
  kit.hub.addChannels('demo', [logs])
  await client.settled()
  kit.hub.publish(mine, 'log', 1)
  t.same(
    (await client.received(1)).map(({ data }) => data),
    [1]
  )
  kit.hub.removeChannels('demo')
  isAllowed = false
  kit.hub.addChannels('demo', [logs])
  t.match((await client.received(2))[1], { event: 'error' })
})
