import { WebSocket } from 'ws'
import { type BusCounts, noBusCounts } from './bus-counts.js'
import { pingBytes } from './ws-internals.js'

/** Messages that wait for a client whose socket takes no more. */
const outboxSlots = 64
/** So many messages dropped in a row, and the client is disconnected. */
const dropLimit = 10

/** Bytes of states for which there was no slot. */
const mostStateBytes = 256 * 1024

/** Which of the frames of a batch tell how something is, of which the latest counts. */
interface BatchStates {
  readonly topic: string
  readonly frames: ReadonlySet<Buffer>
}

/** Messages for one or many clients; `joined` is the same as `frames`, in one piece. */
export interface FrameBatch {
  readonly frames: readonly Buffer[]
  readonly joined: Buffer
  readonly states: BatchStates | undefined
}

export const batchOf = (frames: readonly Buffer[], states?: BatchStates): FrameBatch => ({
  frames,
  joined: frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames),
  states
})

/**
 * The way out to one client: straight into the raw socket while that takes it, which a callback for
 * every message would make a third dearer; into 64 slots while it does not.
 */
export class Outbox {
  #slots: Buffer[] = []
  /** The latest state of each topic for which there was no slot. */
  readonly #states = new Map<string, Buffer>()
  #stateBytes = 0
  #isBlocked = false
  #drops = 0

  constructor(
    readonly webSocket: WebSocket,
    readonly onGivenUp: () => void,
    private readonly counts: Pick<BusCounts, 'missed'> = noBusCounts()
  ) {
    webSocket._socket?.on('drain', () => {
      this.#drain()
    })
  }

  send(batches: readonly FrameBatch[]): void {
    if (this.#isBlocked) {
      for (const { frames, states } of batches) for (const frame of frames) this.#keep(frame, states)
    } else {
      this.#write(batches)
    }
  }

  ping(): void {
    this.#rawSocket?.write(pingBytes)
  }

  /** Nothing may follow a close frame. */
  get #rawSocket() {
    return this.webSocket.readyState === WebSocket.OPEN ? this.webSocket._socket : null
  }

  /** One write to the system, however many batches. */
  #write(batches: readonly FrameBatch[]): void {
    const socket = this.#rawSocket
    if (socket === null) return
    const isJoined = batches.length > 1
    if (isJoined) socket.cork()
    for (const { joined } of batches) this.#isBlocked = !socket.write(joined)
    if (isJoined) socket.uncork()
  }

  #keep(frame: Buffer, states: BatchStates | undefined): void {
    if (this.#slots.length < outboxSlots) {
      this.#drops = 0
      this.#slots.push(frame)
      return
    }
    if (states?.frames.has(frame) === true && this.#keepState(states.topic, frame)) return
    this.#drops++
    this.counts.missed++
    if (this.#drops === dropLimit) this.onGivenUp()
  }

  /** What a client does not hear in time it must not take for what is so. */
  #keepState(topic: string, frame: Buffer): boolean {
    const bytes = this.#stateBytes + frame.length - (this.#states.get(topic)?.length ?? 0)
    if (bytes > mostStateBytes) return false
    this.#stateBytes = bytes
    this.#states.set(topic, frame)
    return true
  }

  #drain(): void {
    this.#isBlocked = false
    if (this.#slots.length === 0) return
    const frames = [...this.#slots, ...this.#states.values()]
    this.#slots = []
    this.#states.clear()
    this.#stateBytes = 0
    this.#write([batchOf(frames)])
  }
}
