import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { allow, bounded, type SignedInCaller, Type } from 'busbar/sdk'
import { type TestClock, testClock, until } from 'busbar/sdk/testing'
import { WebSocket, WebSocketServer } from 'ws'
import type { ChannelRecord } from '../../core/bus/channel-table.js'
import { Hub, type HubOptions } from '../../core/bus/hub.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'

export const knownId = '0b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d'
export const foreignId = '1b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d'

export function channel(name: string, more: Partial<ChannelRecord> = {}): ChannelRecord {
  return {
    plugin: 'demo',
    name,
    prefix: name.replace(/\{\w+\}$/, ''),
    param: /\{(\w+)\}$/.exec(name)?.[1] ?? null,
    access: allow.token('read', { project: 'none' }),
    summary: 'A test',
    events: { log: Type.Any(), done: Type.Any() },
    ...more
  }
}

/** All sockets of a user are of one session, whose caller is remembered. */
function rememberedCallers(): (id: string) => SignedInCaller {
  const known = new Map<string, SignedInCaller>()
  return id => {
    const caller: SignedInCaller = known.get(id) ?? {
      kind: 'session',
      sessionId: id,
      user: { id, email: `${id}@example.com`, username: id, role: 'member' }
    }
    known.set(id, caller)
    return caller
  }
}

interface Frame {
  readonly channel: string
  readonly event: string
  readonly data: unknown
}

/** A client that keeps all it receives. */
export class Client {
  readonly frames: Frame[] = []
  readonly #closed: Promise<{ code: number; reason: string }>

  constructor(readonly socket: WebSocket) {
    socket.on('message', data => {
      this.frames.push(JSON.parse(String(data)))
    })
    socket.on('error', () => {})
    this.#closed = new Promise(resolve => {
      socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }))
    })
  }

  /** How the socket was closed; rejects when it is open for long. */
  get closed(): Promise<{ code: number; reason: string }> {
    return bounded(() => this.#closed, { ms: 20_000, what: 'the close of the socket' })
  }

  /** Whether it was closed at once; else it is answered. */
  async isTurnedAway(): Promise<boolean> {
    return await Promise.race([
      this.#closed.then(() => true),
      once(this.socket, 'pong').then(() => false),
      new Promise<never>(() => {
        this.socket.ping()
      })
    ])
  }

  async send(...frames: ReadonlyArray<object | string>): Promise<void> {
    for (const frame of frames) this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
    await this.settled()
  }

  subscribe(...channels: readonly string[]): Promise<void> {
    return this.send(...channels.map(name => ({ action: 'subscribe', channel: name })))
  }

  /** All that was sent before has been handled, and its answers are here. */
  async settled(): Promise<void> {
    this.socket.ping()
    await bounded(async () => await once(this.socket, 'pong'), { ms: 60_000, what: 'a ping of the server' })
    await wait(5)
  }

  async received(count: number): Promise<readonly Frame[]> {
    await until(
      () => this.frames.length >= count || this.socket.readyState !== WebSocket.OPEN,
      `${count} messages`,
      60_000
    )
    return this.frames
  }

  get data(): unknown[] {
    return this.frames.map(frame => frame.data)
  }
}

export interface HubKit {
  readonly hub: Hub
  readonly clock: TestClock
  readonly server: Server
  readonly logged: Array<Record<string, unknown>>
  /** The server's end of each socket, in order. */
  readonly sockets: WebSocket[]
  connect(user?: string): Promise<Client>
  close(): Promise<void>
}

export interface KitOptions extends Partial<HubOptions> {
  /** What is decided at a subscribe. */
  readonly authorize?: (
    channel: ChannelRecord,
    id: string | undefined,
    caller: SignedInCaller
  ) => Promise<boolean>
  /** Where a channel lies; without it in no project. */
  readonly projectOf?: (id: string | undefined) => string | undefined
  /** What is decided about all that lies in a project. */
  readonly authorizeIn?: (channel: ChannelRecord, project: string, caller: SignedInCaller) => Promise<boolean>
}

/** A hub behind a real server; everybody may hear everything but the channel of `foreignId`. */
export async function startHub({
  authorize = async (_, id) => id !== foreignId,
  projectOf = () => undefined,
  authorizeIn = async () => true,
  ...options
}: KitOptions = {}): Promise<HubKit> {
  const callerNamed = rememberedCallers()
  const clock = testClock()
  const logged: Array<Record<string, unknown>> = []
  const log = createLog({
    level: 'debug',
    format: 'json',
    redactor: createRedactor(),
    destination: { write: line => logged.push(JSON.parse(line)) }
  })
  const hub = new Hub({
    log,
    clock,
    maxConnectionsPerUser: 20,
    authority: {
      decide: async (record, id, caller) => ({
        isGranted: await authorize(record, id, caller),
        project: projectOf(id)
      }),
      decideIn: authorizeIn
    },
    ...options
  })
  const server = createServer()
  const webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    clientTracking: false,
    maxPayload: 64 * 1024
  })
  const sockets: WebSocket[] = []
  server.on('upgrade', (request, socket, head) => {
    webSockets.handleUpgrade(request, socket, head, webSocket => {
      sockets.push(webSocket)
      hub.accept(webSocket, callerNamed(String(request.headers['x-user'])))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    hub,
    clock,
    server,
    logged,
    sockets,
    async connect(user = 'anna') {
      const client = new Client(
        new WebSocket(`ws://127.0.0.1:${port}`, { headers: { 'x-user': user }, perMessageDeflate: false })
      )
      await once(client.socket, 'open')
      return client
    },
    async close() {
      await hub.close()
      server.close()
    }
  }
}
