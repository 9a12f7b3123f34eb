import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { allow, Type } from 'busbar/sdk'
import { type WebSocket, WebSocketServer } from 'ws'
import { Hub } from '../../core/bus/hub.js'
import { textFrame } from '../../core/bus/text-frame.js'
import { systemClock } from '../../core/clock/clock.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'
import { quantile } from '../statistics.js'
import { serveParent } from './child.js'

/**
 * How a message reaches everybody. `bare` is the limit of Node: the same bytes into each raw socket,
 * with no care for who does not read; `joined` are eight events of one tick.
 */
export type Mode = 'naive' | 'bare' | 'hub' | 'joined'

export interface BusReady {
  readonly bytesPerClient: number
}
export interface Delivery {
  /** CPU of this process for one message to one client. */
  readonly micros: number
  /** In CPU time, as the machine has other things to do; one in a hundred, often a collection, may be longer. */
  readonly longTurnMs: number
}

const roundMs = 700
const joinedEvents = 8
const messageBytes = 200

const count = Number(process.argv[2])
const sockets: WebSocket[] = []
const redactor = createRedactor()
const hub = new Hub({
  log: createLog({ level: 'error', format: 'json', redactor }),
  clock: systemClock(),
  maxConnectionsPerUser: count,
  authority: {
    decide: async () => ({ isGranted: true, project: undefined }),
    decideIn: async () => true
  },
  redactor
})
hub.addChannels('bench', [
  {
    plugin: 'bench',
    name: 'bench',
    prefix: 'bench',
    param: null,
    access: allow.token('read', { project: 'none' }),
    summary: 'Messages',
    events: { message: Type.Any() }
  }
])
const server = createServer()
const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, clientTracking: false })
server.on('upgrade', (request, socket, head) => {
  webSockets.handleUpgrade(request, socket, head, webSocket => {
    sockets.push(webSocket)
    hub.accept(webSocket, {
      kind: 'session',
      sessionId: 'x',
      user: { id: 'x', email: 'x', username: 'x', role: 'member' }
    })
  })
})
await once(server.listen(0, '127.0.0.1', 1024), 'listening')
const clients = fork(fileURLToPath(new URL('./bus-clients.js', import.meta.url)), [
  String((server.address() as AddressInfo).port),
  String(count)
])
await once(clients, 'message')
const first = sockets.length
const before = await memory()
clients.send('go on')
await once(clients, 'message')
const bytesPerClient = Math.round(((await memory()) - before) / (count - first))
process.on('SIGTERM', () => {
  clients.kill()
  process.exit()
})
process.on('exit', () => {
  clients.kill()
})

const payload = { channel: 'bench', event: 'message', data: '' }
payload.data = 'x'.repeat(messageBytes - JSON.stringify(payload).length)
/** Sends, and says how many messages each client gets. */
const act: Readonly<Record<Mode, () => number>> = {
  naive: () => {
    for (const socket of sockets) socket.send(JSON.stringify(payload))
    return 1
  },
  bare: () => {
    const frame = textFrame(JSON.stringify(payload))
    for (const socket of sockets) socket._socket?.write(frame)
    return 1
  },
  hub: () => {
    hub.publish('bench', 'message', payload.data)
    return 1
  },
  joined: () => {
    for (let n = 0; n < joinedEvents; n++) hub.publish('bench', 'message', payload.data)
    return joinedEvents
  }
}

const commands = { measure }
export type BusCommands = typeof commands
serveParent({ bytesPerClient } satisfies BusReady, commands)

async function measure(mode: Mode): Promise<Delivery> {
  await sleep(200)
  const turns: number[] = []
  const last = (): number => sockets.at(-1)?._socket?.bytesWritten ?? 0
  const end = performance.now() + roundMs
  const cpuBefore = process.cpuUsage()
  let sent = 0
  while (performance.now() < end) {
    const written = last()
    let turnAt = cpuMs()
    const messages = act[mode]()
    do {
      await new Promise(resolve => setImmediate(resolve))
      const now = cpuMs()
      turns.push(now - turnAt)
      turnAt = now
    } while (last() === written)
    sent += messages * count
    // The clients share the machine: let them keep up.
    while (sockets.some(socket => (socket._socket?.writableLength ?? 0) > 0)) await sleep(1)
  }
  const { user, system } = process.cpuUsage(cpuBefore)
  return { micros: (user + system) / sent, longTurnMs: quantile(turns, 0.99) }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function memory(): Promise<number> {
  for (let n = 0; n < 3; n++) {
    globalThis.gc?.()
    await sleep(50)
  }
  return process.memoryUsage.rss()
}
