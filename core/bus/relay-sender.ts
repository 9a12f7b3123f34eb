import type { Log } from 'busbar/sdk'
import { frameBytes, messagesFrame, partsOf } from './relay-frame.js'
import { WaitingRoom } from './waiting-room.js'

/** So many frames leave in one statement, which costs the database little more than one frame does. */
const framesAtOnce = 64
/** What may wait for the database; more than that is dropped, and counted. */
const backlogBytes = 4 * 1024 * 1024
/** Up to here a publisher that asks goes on: two statements are full, and what others publish has room. */
const roomBytes = backlogBytes / 4
/** In a flood. */
const gapEveryMs = 1_000
/** What a frame of messages needs besides them. */
const headBytes = 120

/** What waits to leave as one NOTIFY. */
interface Parcel {
  /** A `frame` goes alone, as it may be equal to another one; the others have numbers. */
  readonly kind: 'messages' | 'piece' | 'frame'
  /** That of the frame: pieces of one have it in common. */
  readonly number: number
  /** Messages that are not a frame yet, or the one text. */
  readonly texts: string[]
  bytes: number
  /** Live messages in it; pieces have one together. */
  messages: number
}

/**
 * One statement under way at a time, so that the order stays; the messages that come meanwhile leave together
 * in the next ones. Too large for one frame: in pieces. Too much at once: dropped.
 */
export class RelaySender {
  #parcels: Parcel[] = []
  #bytes = 0
  #frames = 0
  #isFailing = false
  /** Messages were lost, and the others have not been told so. */
  #hasGap = false
  #hasLostControl = false
  #gapToldAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined
  /** Since it was last logged. */
  #dropped = 0
  #lost = 0
  #lastLost: number | undefined
  readonly #room = new WaitingRoom(() => this.#bytes <= roomBytes)

  constructor(
    readonly from: string,
    readonly signal: (frames: readonly string[]) => Promise<void>,
    readonly log: Log,
    /** Called when what was lost before can be told: that it was. */
    readonly onGap: (hasLostControl: boolean) => void = () => {}
  ) {}

  /** Messages that did not leave: they were too many at once, or the database was away. */
  get lost(): number {
    return this.#lost
  }

  /** `data` is JSON. */
  send(channel: string, event: string, data: string): void {
    const text = `[${JSON.stringify(channel)},${JSON.stringify(event)},${data}]`
    const bytes = Buffer.byteLength(text)
    if (this.#bytes + bytes > backlogBytes) {
      this.#dropped++
      this.#lost++
      this.#hasGap = true
      this.#running ??= this.#run()
    } else if (bytes + headBytes > frameBytes) {
      const number = this.#frames++
      this.#addParts(messagesFrame(this.from, number, [text]), number, 1)
    } else {
      this.#addMessage(text, bytes)
    }
  }

  say(frame: string): void {
    this.#addParts(frame, this.#frames++, 0)
  }

  /** Resolves when little waits, or nothing is waited for any more: one caller after the other. */
  async room(): Promise<void> {
    await this.#room.enter()
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running
  }

  /** Nobody waits for room from now on. Resolves when all has left. */
  async close(): Promise<void> {
    this.#room.close()
    await this.idle()
  }

  /** Into the last frame that waits, while that has room. */
  #addMessage(text: string, bytes: number): void {
    const last = this.#parcels.at(-1)
    if (last?.kind === 'messages' && headBytes + last.bytes + last.messages + bytes <= frameBytes) {
      last.texts.push(text)
      last.bytes += bytes
      last.messages++
      this.#bytes += bytes
    } else this.#add({ kind: 'messages', number: this.#frames++, texts: [text], bytes, messages: 1 })
  }

  #addParts(frame: string, number: number, messages: number): void {
    const parts = partsOf(this.from, frame, number, messages === 0)
    const kind = parts.length > 1 || messages > 0 ? 'piece' : 'frame'
    for (const text of parts) this.#add({ kind, number, texts: [text], bytes: text.length, messages })
  }

  #add(parcel: Parcel): void {
    this.#parcels.push(parcel)
    this.#bytes += parcel.bytes
    this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    // What else this tick has to say goes along.
    await new Promise(resolve => setImmediate(resolve))
    while (this.#parcels.length > 0) {
      const taken = this.#take()
      this.#room.look()
      await this.#signal(taken)
    }
    if (this.#dropped > 0) {
      this.log.warn(
        { dropped: this.#dropped, backlogBytes },
        'live messages did not reach other processes: they were too many at once'
      )
      this.#dropped = 0
    }
    this.#running = undefined
  }

  /** What leaves next. Few wait here, however many messages are in them. */
  #take(): readonly Parcel[] {
    const alone = this.#parcels.slice(0, framesAtOnce).findIndex(({ kind }) => kind === 'frame')
    const taken = this.#parcels.splice(0, alone === -1 ? framesAtOnce : Math.max(1, alone))
    for (const { bytes } of taken) this.#bytes -= bytes
    return taken
  }

  async #signal(parcels: readonly Parcel[]): Promise<void> {
    try {
      await this.signal(
        parcels.map(({ kind, number, texts }) =>
          kind === 'messages' ? messagesFrame(this.from, number, texts) : texts.join('')
        )
      )
      this.#isFailing = false
      this.#tellGap()
    } catch (error) {
      this.#hasGap = true
      this.#hasLostControl ||= parcels.some(({ messages }) => messages === 0)
      for (const parcel of parcels) this.#countLost(parcel)
      // Once for each outage; live data of that time is lost.
      if (!this.#isFailing) this.log.warn({ err: error }, 'live messages do not reach other processes')
      this.#isFailing = true
    }
  }

  /** At the end of a flood, and in it now and then: each takes a statement of its own. */
  #tellGap(): void {
    if (!this.#hasGap) return
    const now = performance.now()
    if (this.#parcels.length > 0 && now - this.#gapToldAt < gapEveryMs) return
    this.#gapToldAt = now
    const hasLostControl = this.#hasLostControl
    this.#hasGap = this.#hasLostControl = false
    this.onGap(hasLostControl)
  }

  /** A message that lost several of its pieces is lost once. */
  #countLost({ number, messages }: Parcel): void {
    if (number !== this.#lastLost) this.#lost += messages
    this.#lastLost = number
  }
}
