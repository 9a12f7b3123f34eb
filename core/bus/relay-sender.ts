import type { Log } from 'busbar/sdk'
import { frameBytes, messagesFrame, partsOf } from './relay-frame.js'

/** So many pieces of long frames leave in one statement, which costs the database no more than one does. */
const piecesAtOnce = 64
/** What may wait for the database; more than that is dropped, and counted. */
const backlogBytes = 4 * 1024 * 1024
/** What a frame of messages needs besides them. */
const headBytes = 100

interface Item {
  readonly text: string
  readonly bytes: number
  readonly kind: 'message' | 'piece' | 'frame'
}

/**
 * One frame under way at a time, so that the order stays; the messages that come meanwhile leave together
 * in the next. Too large for one frame: in pieces. Too much at once: dropped.
 */
export class RelaySender {
  #items: Item[] = []
  #bytes = 0
  #dropped = 0
  #frames = 0
  #isFailing = false
  #running: Promise<void> | undefined

  constructor(
    readonly from: string,
    readonly signal: (frames: readonly string[]) => Promise<void>,
    readonly log: Log
  ) {}

  /** `data` is JSON. */
  send(channel: string, event: string, data: string): void {
    const text = `[${JSON.stringify(channel)},${JSON.stringify(event)},${data}]`
    const bytes = Buffer.byteLength(text)
    if (this.#bytes + bytes > backlogBytes) {
      this.#dropped++
      this.#running ??= this.#run()
    } else if (bytes + headBytes > frameBytes) {
      this.say(messagesFrame(this.from, [text]))
    } else {
      this.#add({ text, bytes, kind: 'message' })
    }
  }

  say(frame: string): void {
    const parts = partsOf(this.from, frame, this.#frames++)
    const kind = parts.length > 1 ? 'piece' : 'frame'
    for (const text of parts) this.#add({ text, bytes: text.length, kind })
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running
  }

  #add(item: Item): void {
    this.#items.push(item)
    this.#bytes += item.bytes
    this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    // What else this tick has to say goes along.
    await new Promise(resolve => setImmediate(resolve))
    while (this.#items.length > 0) await this.#signal(this.#take())
    if (this.#dropped > 0) {
      this.log.warn(
        { dropped: this.#dropped, backlogBytes },
        'live messages did not reach other processes: they were too many at once'
      )
      this.#dropped = 0
    }
    this.#running = undefined
  }

  /** What leaves next: messages in one frame, pieces of long frames together, or another frame. */
  #take(): readonly string[] {
    const kind = this.#items[0]?.kind
    let count = 0
    let bytes = headBytes
    for (const item of this.#items) {
      bytes += item.bytes + 1
      if (item.kind !== kind || kind === 'frame') break
      if (kind === 'message' ? bytes > frameBytes : count === piecesAtOnce) break
      count++
    }
    const taken = this.#items.splice(0, Math.max(1, count))
    for (const item of taken) this.#bytes -= item.bytes
    const texts = taken.map(({ text }) => text)
    return kind === 'message' ? [messagesFrame(this.from, texts)] : texts
  }

  async #signal(frames: readonly string[]): Promise<void> {
    try {
      await this.signal(frames)
      this.#isFailing = false
    } catch (error) {
      // Once for each outage; live data of that time is lost.
      if (!this.#isFailing) this.log.warn({ err: error }, 'live messages do not reach other processes')
      this.#isFailing = true
    }
  }
}
