/** Clients below the WebSocket, which only read: this process pays for them, and not the one under measurement. */
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const atOnce = 50
const settleMs = 500
const port = Number(process.argv[2])
const count = Number(process.argv[3])
/** Of the first, what the server loads and compiles once is not counted. */
const first = 100

const text = Buffer.from('{"action":"subscribe","channel":"bench"}')
const subscribe = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text])
const handshake =
  'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

async function connect(amount: number): Promise<void> {
  for (let n = 0; n < amount; n += atOnce) {
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        const socket = createConnection(port, '127.0.0.1')
        socket.write(handshake)
        await once(socket, 'data')
        socket.write(subscribe)
        socket.on('error', () => {})
        socket.on('data', () => {})
      })
    )
  }
  await sleep(settleMs)
  process.send?.('connected')
}

await connect(first)
await once(process, 'message')
await connect(count - first)
await once(process, 'disconnect')
process.exit()
