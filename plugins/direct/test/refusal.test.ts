import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'tap'
import { openForwarder } from '../forwarder.js'

const answers: Readonly<Record<string, string>> = {
  '/reason': 'HTTP/1.1 200 O\u0001K\r\nContent-Length: 0\r\n\r\n',
  '/status': 'HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n',
  '/unasked': 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
  '/good': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
}

test('what node would not send is answered with 502, for requests and upgrades alike', async t => {
  const container = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', data => {
      socket.write(answers[String(data).split(' ')[1] ?? ''] ?? '', 'latin1')
    })
  })
  await new Promise<void>(resolve => {
    container.listen(0, '127.0.0.1', resolve)
  })
  const { port } = container.address() as AddressInfo
  const forwarder = await openForwarder(
    { host: '127.0.0.1', port: 0 },
    { deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port }
  )
  t.teardown(async () => {
    await forwarder.close()
    container.close()
  })

  const statusLine = (path: string, headers: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(forwarder.port, '127.0.0.1', () => {
        socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`)
      })
      socket.setTimeout(2000, () => {
        socket.destroy(new Error(`no answer for ${path}`))
      })
      socket.once('error', reject)
      socket.once('data', data => {
        resolve(String(data).split('\r\n')[0] ?? '')
        socket.destroy()
      })
    })
  for (const headers of ['', 'Connection: Upgrade\r\nUpgrade: websocket\r\n']) {
    t.equal(await statusLine('/reason', headers), 'HTTP/1.1 502 Bad Gateway')
    t.equal(await statusLine('/status', headers), 'HTTP/1.1 502 Bad Gateway')
    t.equal(await statusLine('/good', headers), 'HTTP/1.1 200 OK')
  }
  t.equal(
    await statusLine('/unasked', ''),
    'HTTP/1.1 502 Bad Gateway',
    'a change of protocol that nobody asked for'
  )
  const { drain } = forwarder.switchTo({ deploymentId: 'e', containerId: 'f', host: '127.0.0.1', port })
  t.equal((await drain(1000)).cut, 0, 'none of them is left open')
})
