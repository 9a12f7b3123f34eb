/** A version of an application behind a proxy: says its name and how much it was sent, and echoes over WebSocket. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { serveParent } from './child.js'

const [, , name = ''] = process.argv

export interface VersionReady {
  readonly port: number
}

const server = createServer((incoming, answer) => {
  let length = 0
  incoming.on('data', (chunk: Buffer) => {
    length += chunk.length
  })
  incoming.on('end', () => answer.end(`${name} ${length}`))
})
const sockets = new WebSocketServer({ server })
sockets.on('connection', socket => {
  socket.on('error', () => {})
  socket.on('message', message => socket.send(message.toString()))
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
const ready: VersionReady = { port: (server.address() as AddressInfo).port }
serveParent(ready, {})
