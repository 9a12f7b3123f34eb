import { EventEmitter } from 'node:events'
import type { SignedInCaller } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import { Connection, type Subscribable } from '../../core/bus/connection.js'
import { ConnectionTable } from '../../core/bus/connection-table.js'

test('what is refused of many frames that came at once is answered in one write', async t => {
  const writes: Buffer[] = []
  const socket = { on: () => {}, write: (bytes: Buffer) => writes.push(bytes) > 0 }
  const webSocket = {
    readyState: 1,
    _socket: socket,
    isPaused: false,
    on: () => {},
    pause: () => {},
    resume: () => {}
  }
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

class TurnedAway extends EventEmitter {
  readonly OPEN = 1
  readonly readyState = 1
  readonly calls: string[] = []
  close(code: number): void {
    this.calls.push(`close ${code}`)
  }
  terminate(): void {
    this.calls.push('terminate')
  }
}

test('a socket beyond the limit is ended when its client does not answer the close', async t => {
  const clock = testClock()
  const caller = { user: { id: 'ann' } } as SignedInCaller
  const table = new ConnectionTable({ clock, maxPerUser: 0, log: {}, subscribable: {} } as never)
  const admit = () => {
    const socket = new TurnedAway()
    t.equal(table.admit(socket as unknown as WebSocket, caller), undefined)
    return socket
  }
  const silent = admit()
  const polite = admit()
  polite.emit('close')
  await clock.advance(4999)
  t.same(silent.calls, ['close 1013'])
  await clock.advance(1)
  t.same(silent.calls, ['close 1013', 'terminate'])
  t.same(polite.calls, ['close 1013'])
  await table.close()
})
