import type { Clock } from 'busbar/sdk'
import type { WebSocket } from 'ws'
import { type Follower, startHeartbeat } from './heartbeat.js'
import { pingBytes } from './ws-internals.js'

/** Pings the clients of plugins' own sockets, and ends the sockets of those that are dead. */
export class DuplexHeartbeat {
  readonly #followed = new Set<Follower>()
  readonly stop: () => void

  constructor(clock: Clock) {
    this.stop = startHeartbeat(clock, this.#followed)
  }

  /** Until it closes. */
  follow(socket: WebSocket): void {
    const followed = new FollowedSocket(socket)
    this.#followed.add(followed)
    socket.once('close', () => {
      this.#followed.delete(followed)
    })
  }
}

/**
 * One socket. A ping waits behind what is being sent already, which over a slow line may be longer than a client has for its
 * answer: so whatever moves in either direction shows that it lives.
 */
class FollowedSocket implements Follower {
  #isUnanswered = false
  #movedAtPing = 0

  constructor(private readonly socket: WebSocket) {
    socket.on('pong', () => {
      this.#isUnanswered = false
    })
  }

  ping(): void {
    if (this.socket.readyState !== this.socket.OPEN) return
    this.#isUnanswered = true
    this.#movedAtPing = this.#moved
    // Two bytes, which count as moved.
    this.socket.ping()
  }

  endIfSilent(): void {
    const hasMoved = this.#moved - this.#movedAtPing > pingBytes.length
    // A socket that is not being read from cannot answer.
    if (this.#isUnanswered && !hasMoved && !this.socket.isPaused) this.socket.terminate()
  }

  /** Bytes that came, and that the system has taken to send. */
  get #moved(): number {
    const raw = this.socket._socket
    return raw === null ? 0 : raw.bytesRead + raw.bytesWritten - raw.writableLength
  }
}
