import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { openForwarder } from '../forwarder.js'
import { ask, startOrigin } from './origin.js'

const here = { host: '127.0.0.1', port: 0 }
const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('what the connections of a visitor send ahead is bounded by all of them together, at all addresses', async t => {
  const held: ServerResponse[] = []
  let isHolding = true
  const origin = await startOrigin((_, response) => {
    if (isHolding) held.push(response)
    else response.end('ok')
  })
  const forwarders = [await openForwarder(here, origin.target), await openForwarder(here, origin.target)]
  t.teardown(async () => {
    await Promise.all(forwarders.map(forwarder => forwarder.close()))
    await origin.close()
  })
  const said: string[] = []
  const visitor = async (at: number): Promise<void> => {
    const port = forwarders[at % 2]?.port ?? 0
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
    t.teardown(() => {
      socket.destroy()
    })
    said[at] = ''
    socket.on('error', () => {})
    socket.on('data', data => {
      said[at] += String(data)
    })
    await once(socket, 'connect')
    socket.write(get.repeat(61))
  }
  await Promise.all(Array.from({ length: 40 }, async (_, at) => await visitor(at)))
  await until(() => held.length === 40, 'the first request of each is at the container')
  isHolding = false
  for (const response of held) response.end('ok')
  const count = (status: string): number =>
    said.flatMap(one => one.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []).filter(one => one === status).length
  await until(() => count('200') === 1_040, 'what could wait is answered by the container')
  await until(() => count('429') === 24, 'the first request of each that could not is refused')
  t.ok(said.some(one => /text\/plain[\s\S]*Send fewer ahead/.test(one)))
  t.equal((await ask(forwarders[0]?.port ?? 0, { agent: false })).status, 200)
})
