import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { test } from 'tap'
import { EngineClient } from '../engine-client.js'

test('a client that is closed ends its connections, also those that became the stream of a program', async t => {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket)
    // As engines answer to the start of a program; then it says nothing.
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    })
    socket.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const client = new EngineClient({ docker_host: `tcp://127.0.0.1:${port}` })
  const stream = await client.call(
    'start a program',
    async docker => await docker.getExec('a').start({ hijack: true, stdin: true })
  )
  stream.on('error', () => {})
  const [socket] = sockets
  t.ok(socket)
  const ended = once(socket as Socket, 'close', { signal: AbortSignal.timeout(5000) })
  client.close()
  await ended
})
