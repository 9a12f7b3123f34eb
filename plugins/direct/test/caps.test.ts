import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { defaultLimits } from '../../../sdk/http1/forwarding/route.js'
import { openForwarder } from '../forwarder.js'
import { ask, startOrigin } from './origin.js'

const here = { host: '127.0.0.1', port: 0 }

async function open(t: Test, port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  t.teardown(() => {
    socket.destroy()
  })
  await once(socket, 'connect')
  socket.write('GET / HTTP/1.1\r\n')
  return socket
}

test('an application has so many connections, and those of all applications are counted together', async t => {
  const origin = await startOrigin((_, response) => {
    response.end('ok')
  })
  const together = { open: 0, max: 8 }
  const caps = { inAll: 6, perAddress: 100, together }
  const [one, two] = [
    await openForwarder(here, origin.target, defaultLimits, caps),
    await openForwarder(here, origin.target, defaultLimits, caps)
  ]
  t.teardown(async () => {
    await Promise.all([one.close(), two.close()])
    await origin.close()
  })

  const slow = await Promise.all(Array.from({ length: 6 }, async () => await open(t, one.port)))
  t.match(await ask(one.port, { agent: false }), { status: 503, body: /too many connections/ })
  t.equal((await ask(two.port, { agent: false })).status, 200, 'another application is served')
  t.ok(await until(() => together.open === 6, 'six connections are open'))
  slow.push(await open(t, two.port), await open(t, two.port))
  t.equal((await ask(two.port, { agent: false })).status, 503, 'up to what all may have')

  for (const socket of slow) socket.destroy()
  t.ok(await until(() => together.open === 0, 'no connection is open'))
  t.equal((await ask(one.port, { agent: false })).status, 200)
})

test('who holds all connections of many applications leaves some to each of the others', async t => {
  const origin = await startOrigin((_, response) => {
    response.end('ok')
  })
  const caps = { inAll: 6, perAddress: 100, together: { open: 0, max: 8, each: 4 } }
  const forwarders = await Promise.all(
    Array.from({ length: 3 }, async () => await openForwarder(here, origin.target, defaultLimits, caps))
  )
  t.teardown(async () => {
    await Promise.all(forwarders.map(async forwarder => await forwarder.close()))
    await origin.close()
  })
  const [one, two, three] = forwarders.map(({ port }) => port) as [number, number, number]
  await Promise.all(Array.from({ length: 8 }, async (_, index) => await open(t, index < 4 ? one : two)))
  t.ok(await until(() => caps.together.open === 8, 'eight connections are open'))
  t.equal((await ask(one, { agent: false })).status, 503)
  t.equal((await ask(three, { agent: false })).status, 200)
  await open(t, three, '127.0.0.2')
  t.ok(await until(() => caps.together.open === 9, 'nine connections are open'))
  t.equal(
    (await ask(three, { agent: false, localAddress: '127.0.0.2' })).status,
    503,
    'one client does not take them all'
  )
  t.equal((await ask(three, { agent: false })).status, 200)
  await Promise.all(
    ['127.0.0.3', '127.0.0.4', '127.0.0.5'].map(async address => await open(t, three, address))
  )
  t.ok(await until(() => caps.together.open === 12, 'twelve connections are open'))
  t.equal((await ask(three, { agent: false })).status, 503, 'but no more than its own')
})

test('a client address has a share of them', async t => {
  const origin = await startOrigin((_, response) => {
    response.end('ok')
  })
  const forwarder = await openForwarder(here, origin.target, defaultLimits, { inAll: 100, perAddress: 3 })
  t.teardown(async () => {
    await forwarder.close()
    await origin.close()
  })
  await Promise.all(Array.from({ length: 3 }, async () => await open(t, forwarder.port)))
  t.match(await ask(forwarder.port, { agent: false }), {
    status: 429,
    body: /too many connections from this address/
  })
})
