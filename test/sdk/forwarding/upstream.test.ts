import { request } from 'node:http'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { startOrigin } from '../../../plugins/direct/test/origin.js'
import { createUpstream } from '../../../sdk/http1/forwarding/upstream.js'

const target = { deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port: 1 }

test('a container that is retired is empty at once, or when the last of what is under way has ended', async t => {
  const idle = createUpstream(target)
  t.equal(idle.emptyAt, undefined)
  idle.retire()
  t.type(idle.emptyAt, 'number')

  const busy = createUpstream(target)
  busy.enter()
  busy.enter()
  busy.retire()
  busy.leave()
  t.equal(busy.emptyAt, undefined, 'one is still under way')
  busy.leave()
  const emptyAt = busy.emptyAt
  t.type(emptyAt, 'number')
  busy.enter()
  busy.leave()
  t.equal(busy.emptyAt, emptyAt, 'the first time counts')
})

test('one that is not retired is never said to be empty, and keeps its connections', async t => {
  let connections = 0
  const origin = await startOrigin((_, response) => response.end('ok'))
  origin.server.on('connection', () => {
    connections += 1
  })
  t.teardown(() => origin.close())
  const upstream = createUpstream(origin.target)
  const ask = async (): Promise<void> => {
    upstream.enter()
    await new Promise<void>((resolve, reject) => {
      request({ host: origin.target.host, port: origin.target.port, agent: upstream.agent }, answer => {
        answer.resume().once('end', resolve)
      })
        .once('error', reject)
        .end()
    })
    upstream.leave()
  }
  await ask()
  await ask()
  t.equal(upstream.emptyAt, undefined)
  t.equal(connections, 1, 'the second goes over the connection of the first')
  const kept = Object.values(upstream.agent.freeSockets).flatMap(sockets => sockets ?? [])
  t.equal(kept.length, 1)
  upstream.retire()
  t.equal(kept[0]?.destroyed, true, 'at once')
  await until(async () => {
    const open = await new Promise<number>(resolve =>
      origin.server.getConnections((_, count) => resolve(count))
    )
    return open === 0
  }, 'its kept connection is closed')
})

test('draining ends with the last of what is under way, or with how many are left when the time is up', async t => {
  const upstream = createUpstream(target)
  t.equal(await upstream.drained(60_000), 0, 'nothing is under way')
  upstream.enter()
  upstream.enter()
  t.equal(await upstream.drained(10), 2)
  const [one, other] = [upstream.drained(60_000), upstream.drained(60_000)]
  upstream.leave()
  upstream.leave()
  t.same(await Promise.all([one, other]), [0, 0], 'whoever waits is told')
})
