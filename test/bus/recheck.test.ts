import { allow } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type Client, channel, foreignId, type HubKit, knownId, startHub } from './hub-kit.js'

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
  kit.hub.recheck({ kind: 'all' })
  t.same(await ann.received(1), [{ channel: mine, event: 'error', data: { error: 'access denied' } }])
  kit.hub.publish(mine, 'log', 1)
  kit.hub.publish(other, 'log', 2)
  t.same(
    (await bob.received(2)).map(({ data }) => data),
    [1, 2]
  )
  t.same((await ann.received(2)).slice(1), [{ channel: other, event: 'log', data: 2 }])
  kit.hub.recheck({ kind: 'all' })
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
  kit.hub.recheck({ kind: 'all' })
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
  kit.hub.recheck({ kind: 'all' })
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
  kit.hub.recheck({ kind: 'all' })
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

const idOf = (n: number) => `${String(n).padStart(8, '0')}${knownId.slice(8)}`

/** As many channels as one socket may hold. */
async function subscribeToAll(client: Client, { hub }: HubKit, prefix = 'logs:'): Promise<void> {
  for (let from = 0; from < 1000; from += 100)
    await client.subscribe(...Array.from({ length: 100 }, (_, n) => `${prefix}${idOf(from + n)}`))
  await until(() => hub.hasSubscribers(`${prefix}${idOf(999)}`), 'all is granted')
}

test('a change of one project asks for nothing in another, and once for each caller and declaration in its own', async t => {
  const asked: string[] = []
  const kit = await startHub({
    maxConnectionsPerUser: 3,
    projectOf: () => 'p',
    authorize: async (_, id) => {
      asked.push(`channel ${id}`)
      return true
    },
    authorizeIn: async ({ name }, project, { user }) => {
      asked.push(`${user.id} ${name} ${project}`)
      return true
    }
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs, channel('state:{applicationId}')])
  const [first, second, bob] = [await kit.connect('ann'), await kit.connect('ann'), await kit.connect('bob')]
  await subscribeToAll(first, kit)
  await subscribeToAll(second, kit)
  await bob.subscribe(mine, `state:${knownId}`)
  asked.length = 0
  kit.hub.recheck({ kind: 'project', id: 'q' })
  for (const client of [first, second, bob]) await client.settled()
  t.same(asked, [], 'another project')
  kit.hub.recheck({ kind: 'project', id: 'p' })
  await until(() => asked.length === 3, 'everybody in it is asked for')
  for (const client of [first, second, bob]) await client.settled()
  t.same(asked.sort(), [
    'ann logs:{applicationId} p',
    'bob logs:{applicationId} p',
    'bob state:{applicationId} p'
  ])
  asked.length = 0
  kit.hub.recheck({ kind: 'user', id: 'bob' })
  await until(() => asked.length === 2, 'a user is asked for')
  for (const client of [first, second, bob]) await client.settled()
  t.same(asked.sort(), ['bob logs:{applicationId} p', 'bob state:{applicationId} p'])
})

test('a socket in a project of many ends all that it may no longer hear, and those of others go on', async t => {
  const lost = new Set<string>()
  const kit = await startHub({
    projectOf: id => (id === idOf(1000) ? 'q' : 'p'),
    authorize: async () => true,
    authorizeIn: async (_, project, { user }) => !lost.has(`${user.id} ${project}`)
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const [ann, bob] = [await kit.connect('ann'), await kit.connect('bob')]
  await subscribeToAll(ann, kit)
  await bob.subscribe(`logs:${idOf(0)}`, `logs:${idOf(1000)}`)
  lost.add('ann p')
  kit.hub.recheck({ kind: 'project', id: 'p' })
  const refusals = await ann.received(1000)
  t.equal(new Set(refusals.filter(({ event }) => event === 'error').map(frame => frame.channel)).size, 1000)
  t.equal(kit.hub.hasSubscribers(`logs:${idOf(999)}`), false)
  for (const n of [0, 1000]) kit.hub.publish(`logs:${idOf(n)}`, 'log', n)
  await bob.received(2)
  t.same(bob.data, [0, 1000])
})

test('the event loop turns while it is asked for many, and changes that come meanwhile make one further round', async t => {
  let turns = 0
  let isCounting = true
  const count = () => {
    turns++
    if (isCounting) setImmediate(count)
  }
  const askedAt: number[] = []
  const kit: HubKit = await startHub({
    projectOf: () => 'p',
    authorizeIn: async () => {
      askedAt.push(turns)
      if (askedAt.length === 2) for (let n = 0; n < 50; n++) kit.hub.recheck({ kind: 'project', id: 'p' })
      // Longer than a turn may be.
      for (const end = performance.now() + 12; performance.now() < end; );
      return true
    }
  })
  t.teardown(() => kit.close())
  t.teardown(() => {
    isCounting = false
  })
  kit.hub.addChannels('demo', [logs])
  for (const user of ['ann', 'bob', 'cy', 'dan', 'eve']) await (await kit.connect(user)).subscribe(mine)
  setImmediate(count)
  kit.hub.recheck({ kind: 'project', id: 'p' })
  t.same(askedAt, [], 'the change itself waits for none')
  await until(() => askedAt.length === 10, 'it is asked once more for everybody')
  for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve))
  t.equal(askedAt.length, 10, 'and not again')
  t.equal(new Set(askedAt).size, 10, 'each time in another turn')
})

test('who loses a project is refused soon, however much is asked for elsewhere', async t => {
  const lost = new Set<string>()
  let open: () => void = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  const kit = await startHub({
    projectOf: id => (id === knownId ? 'p' : 'q'),
    authorize: async () => true,
    authorizeIn: async (_, project, { user }) => {
      if (project === 'q') await opened
      return !lost.has(`${user.id} ${project}`)
    }
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const [ann, bob] = [await kit.connect('ann'), await kit.connect('bob')]
  await subscribeToAll(ann, kit)
  await bob.subscribe(mine)
  kit.hub.recheck({ kind: 'project', id: 'q' })
  lost.add('bob p').add('ann q')
  kit.hub.recheck({ kind: 'project', id: 'p' })
  t.match(await bob.received(1), [{ event: 'error' }])
  t.same(ann.frames, [], 'the other project is still being asked for')
  open()
  await ann.received(1000)
  t.equal(kit.hub.hasSubscribers(`logs:${idOf(0)}`), false)
})

test('a plugin that comes back asks where its channels lie only when it declares them with other access', async t => {
  const asked: string[] = []
  const kit = await startHub({
    projectOf: () => 'p',
    authorize: async (_, id) => {
      asked.push(`channel ${id}`)
      return true
    },
    authorizeIn: async (_, project) => {
      asked.push(`project ${project}`)
      return true
    }
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [logs])
  const client = await kit.connect()
  await client.subscribe(mine, other)
  asked.length = 0
  kit.hub.removeChannels('demo')
  kit.hub.addChannels('demo', [channel('logs:{applicationId}')])
  await until(() => asked.length > 0, 'it is asked')
  await client.settled()
  t.same(asked.splice(0), ['project p'])
  kit.hub.addChannels('demo', [
    channel('logs:{applicationId}', { access: allow.token('deploy', { project: 'none' }) })
  ])
  await until(() => asked.length > 1, 'it is asked')
  await client.settled()
  t.same(asked.splice(0).sort(), [`channel ${knownId}`, `channel ${foreignId}`])
  kit.hub.recheck({ kind: 'project', id: 'p' })
  await until(() => asked.length > 0, 'it is asked')
  await client.settled()
  t.same(asked, ['project p'], 'it is known again')
})
