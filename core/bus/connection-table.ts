import type { Clock, Log, SignedInCaller } from 'busbar/sdk'
import type { WebSocket } from 'ws'
import { whenLate } from '../clock/waits.js'
import { type BusCounts, noBusCounts } from './bus-counts.js'
import { Connection, type Subscribable } from './connection.js'
import { startHeartbeat } from './heartbeat.js'
import type { Relay } from './relay.js'

/** How long `close` waits for clients to answer the close frame. */
const closeWithinMs = 1000
/** And how long a socket that was turned away has for that. */
const leaveWithinMs = 5000

interface ConnectionTableParts {
  readonly log: Log
  readonly clock: Clock
  readonly maxPerUser: number
  readonly subscribable: Subscribable
  readonly counts?: BusCounts
  /** The other processes of the installation, which count for the cap too. */
  readonly others?: Pick<Relay, 'countSockets' | 'socketsElsewhere'> | undefined
}

/** The open sockets, and how many each user has. */
export class ConnectionTable {
  readonly #open = new Set<Connection>()
  readonly #countOf = new Map<string, number>()
  readonly #stopHeartbeat: () => void
  #onEmpty: (() => void) | undefined
  #isClosed = false

  constructor(private readonly parts: ConnectionTableParts) {
    this.#stopHeartbeat = startHeartbeat(parts.clock, this.#open)
  }

  get size(): number {
    return this.#open.size
  }

  /** Those of a user. */
  of(userId: string): readonly Connection[] {
    return [...this.#open].filter(({ caller }) => caller.user.id === userId)
  }

  /** Undefined for a socket that is turned away. */
  admit(webSocket: WebSocket, caller: SignedInCaller): Connection | undefined {
    // A socket that breaks says so here and then closes: its close is all that matters.
    webSocket.on('error', () => {})
    const { log, maxPerUser, subscribable, counts = noBusCounts() } = this.parts
    const own = this.#countOf.get(caller.user.id) ?? 0
    if (this.#isClosed || webSocket.readyState !== webSocket.OPEN) {
      webSocket.terminate()
      return undefined
    }
    if (own + (this.parts.others?.socketsElsewhere(caller.user.id) ?? 0) >= maxPerUser) {
      this.#turnAway(webSocket)
      return undefined
    }
    this.#count(caller.user.id, own + 1)
    const giveUp = (): void => {
      log.debug({ user: caller.user.id }, 'a client that did not read was disconnected')
      counts.disconnected++
      webSocket.terminate()
    }
    const connection = new Connection(webSocket, caller, subscribable, giveUp, counts)
    this.#open.add(connection)
    webSocket.on('close', () => {
      connection.end()
      this.#dismiss(connection)
    })
    return connection
  }

  /** Resolves when every socket is gone. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopHeartbeat()
    if (this.#open.size === 0) return
    const emptied = new Promise<void>(resolve => {
      this.#onEmpty = resolve
    })
    for (const { webSocket } of this.#open) webSocket.close(1000)
    await whenLate(emptied, closeWithinMs, () => {
      for (const { webSocket } of this.#open) webSocket.terminate()
    })
  }

  /** It counts for nobody, so it must not stay because its client does not answer. */
  #turnAway(webSocket: WebSocket): void {
    const gone = new AbortController()
    webSocket.once('close', () => {
      gone.abort()
    })
    webSocket.close(1013, 'too many connections')
    this.parts.clock.sleep(leaveWithinMs, gone.signal).then(
      () => {
        webSocket.terminate()
      },
      () => {}
    )
  }

  #dismiss(connection: Connection): void {
    this.#open.delete(connection)
    const userId = connection.caller.user.id
    this.#count(userId, (this.#countOf.get(userId) ?? 1) - 1)
    if (this.#open.size === 0) this.#onEmpty?.()
  }

  #count(userId: string, count: number): void {
    if (count > 0) this.#countOf.set(userId, count)
    else this.#countOf.delete(userId)
    this.parts.others?.countSockets(userId, count)
  }
}
