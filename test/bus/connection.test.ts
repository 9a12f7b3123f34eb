import type { SignedInCaller } from 'busbar/sdk'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { Connection, type Subscribable } from '../../core/bus/connection.js'

test('what is refused of many frames that came at once is answered in one write', async t => {
  const writes: Buffer[] = []
  const socket = { on: () => {}, write: (bytes: Buffer) => writes.push(bytes) > 0 }
  const webSocket = { readyState: 1, _socket: socket, isPaused: false, pause: () => {}, resume: () => {} }
  const hub: Subscribable = {
    decide: async () => await new Promise(() => {}),
    join: () => {},
    leave: () => {}
  }
  const connection = new Connection(webSocket as unknown as WebSocket, {} as SignedInCaller, hub, () => {})
  for (let n = 0; n < 1000; n++) connection.subscribe(`asked:${n}`)
  for (let n = 0; n < 1500; n++) connection.subscribe(`beyond:${n}`)
  t.equal(writes.length, 0)
  await Promise.resolve()
  t.equal(writes.length, 1)
  const text = String(writes[0])
  t.equal(text.match(/access denied/g)?.length, 1500)
  t.ok(text.includes('beyond:1499'))
  connection.subscribe('beyond:again')
  await Promise.resolve()
  t.equal(writes.length, 2, 'and what comes later by itself')
})
