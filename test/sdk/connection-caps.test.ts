import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { capConnections, standsForMany } from '../../sdk/http1/connection-caps.js'

/** A server with two connections for an address, of which `/proxy` says that its own stands for many. */
async function capped(t: Test): Promise<(path: string) => Promise<string>> {
  const server = createServer((request, response) => {
    if (request.url === '/proxy') standsForMany(request.socket)
    response.end('ok')
  })
  capConnections(server, { inAll: 5, perAddress: 2 })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: Socket[] = []
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return async path => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {})
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const [first] = (await once(socket, 'data')) as [Buffer]
    return first.toString('latin1').slice(9, 12)
  }
}

test('connections of a proxy count among all, and not for its address', async t => {
  const ask = await capped(t)
  for (let times = 1; times <= 3; times += 1) t.equal(await ask('/proxy'), '200')
  t.same([await ask('/'), await ask('/')], ['200', '200'], 'the address has its own two beside them')
  t.equal(await ask('/'), '429', 'and no more')
})

test('others of the same address have their cap', async t => {
  const ask = await capped(t)
  t.same([await ask('/'), await ask('/'), await ask('/')], ['200', '200', '429'])
})
