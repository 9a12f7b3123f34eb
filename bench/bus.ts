import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createConnection, type AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { allow } from 'busbar/sdk'
import { WebSocketServer, type WebSocket } from 'ws'
import { createHub } from '../core/bus/hub.js'
import { frameOf } from '../core/bus/ws-internals.js'
import { systemClock } from '../core/clock/clock.js'
import { createLog } from '../core/log/log.js'
import { createRedactor } from '../core/log/redactor.js'

/** Fan-out of one 200-byte message to N clients: the hub against `ws.send` with JSON for each client. */
const clientCounts = [5000, 1000]
const rounds = 5
const roundMs = 1000
const goals: Readonly<Record<string, number>> = { joined: 8 }

/** `bare` is the limit of Node: the same bytes into each raw socket, with no care for who does not read. */
const modes = ['naive', 'bare', 'hub', 'joined'] as const
type Mode = (typeof modes)[number]

export async function benchBus (): Promise<void> {
  console.log('fan-out: server CPU per delivered message of 200 bytes, interleaved runs')
  for (const [index, count] of clientCounts.entries()) {
    const bench = await startServer(count)
    const costs: Record<Mode, number[]> = { naive: [], bare: [], hub: [], joined: [] }
    for (let round = 0; round < rounds; round++) {
      for (const mode of modes) costs[mode].push(await bench.measure(mode))
    }
    const naive = median(costs.naive)
    // Only a fresh process tells what memory a connection costs.
    const memory = index === 0 ? `, ${(bench.bytesPerClient / 1024).toFixed(1)} KiB of memory for each (goal 12)` : ''
    console.log(`${count} clients${memory}`)
    for (const mode of modes) {
      const cost = median(costs[mode])
      const goal = goals[mode] === undefined ? '' : `  (goal ${goals[mode]})`
      console.log(`  ${mode.padEnd(7)} ${cost.toFixed(2).padStart(6)} µs  ${(naive / cost).toFixed(2).padStart(5)} × naive${goal}  p99 of a turn ${bench.longTurn(mode).toFixed(1)} ms`)
    }
    await bench.close()
  }
}

async function startServer (count: number) {
  const redactor = createRedactor()
  const log = createLog({ level: 'error', format: 'json', redactor })
  const hub = createHub({ log, clock: systemClock(), maxConnectionsPerUser: count, authorize: async () => true, redactor })
  hub.addChannels('bench', [{ plugin: 'bench', name: 'bench', prefix: 'bench', param: null, access: allow.token('read', { project: 'none' }), events: ['message'] }])
  const server = createServer()
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, clientTracking: false })
  const sockets: WebSocket[] = []
  server.on('upgrade', (request, socket, head) => {
    webSockets.handleUpgrade(request, socket, head, webSocket => {
      sockets.push(webSocket)
      hub.accept(webSocket, { kind: 'session', sessionId: 'x', user: { id: 'x', email: 'x', username: 'x', role: 'member' } })
    })
  })
  await once(server.listen(0, '127.0.0.1', 1024), 'listening')
  const before = await memory()
  const clients = fork(fileURLToPath(import.meta.url), ['clients', String((server.address() as AddressInfo).port), String(count)])
  await once(clients, 'message')
  const bytesPerClient = Math.round((await memory() - before) / count)

  const payload = { channel: 'bench', event: 'message', data: '' }
  payload.data = 'x'.repeat(200 - JSON.stringify(payload).length)
  const turns: Record<Mode, number[]> = { naive: [], bare: [], hub: [], joined: [] }
  const act: Record<Mode, () => number> = {
    naive: () => { for (const socket of sockets) socket.send(JSON.stringify(payload)); return 1 },
    bare: () => {
      const frame = frameOf(JSON.stringify(payload))
      for (const socket of sockets) socket._socket?.write(frame)
      return 1
    },
    hub: () => { hub.publish('bench', 'message', payload.data); return 1 },
    joined: () => { for (let n = 0; n < 8; n++) hub.publish('bench', 'message', payload.data); return 8 }
  }
  const last = () => sockets.at(-1)?._socket?.bytesWritten ?? 0

  async function measure (mode: Mode): Promise<number> {
    await wait(200)
    const end = performance.now() + roundMs
    const cpu = process.cpuUsage()
    let sent = 0
    while (performance.now() < end) {
      const written = last()
      let turnAt = cpuMs()
      const messages = act[mode]()
      do {
        await new Promise(resolve => setImmediate(resolve))
        const now = cpuMs()
        turns[mode].push(now - turnAt)
        turnAt = now
      } while (last() === written)
      sent += messages * count
      // The clients share the machine: let them keep up.
      while (sockets.some(socket => (socket._socket?.writableLength ?? 0) > 0)) await wait(1)
    }
    const { user, system } = process.cpuUsage(cpu)
    return (user + system) / sent
  }

  return {
    bytesPerClient,
    measure,
    /** In CPU time, as the machine has other things to do; one in a hundred, often a collection, may be longer. */
    longTurn: (mode: Mode) => turns[mode].toSorted((a, b) => a - b)[Math.floor(turns[mode].length * 0.99)] ?? Number.NaN,
    async close () {
      await hub.close()
      server.close()
      clients.kill()
    }
  }
}

/** Clients below the WebSocket, which only read: another process pays for them. */
async function runClients (port: number, count: number): Promise<void> {
  const text = Buffer.from('{"action":"subscribe","channel":"bench"}')
  const subscribe = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text])
  for (let n = 0; n < count; n += 50) {
    await Promise.all(Array.from({ length: 50 }, async () => {
      const socket = createConnection(port, '127.0.0.1')
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')
      await once(socket, 'data')
      socket.write(subscribe)
      socket.on('error', () => {})
      socket.on('data', () => {})
    }))
  }
  await wait(500)
  process.send?.('ready')
  await once(process, 'disconnect')
  process.exit()
}

function cpuMs (): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function memory (): Promise<number> {
  for (let n = 0; n < 3; n++) {
    globalThis.gc?.()
    await wait(50)
  }
  return process.memoryUsage.rss()
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

if (process.argv[2] === 'clients') await runClients(Number(process.argv[3]), Number(process.argv[4]))
else if (process.argv[1] === fileURLToPath(import.meta.url)) await benchBus()
