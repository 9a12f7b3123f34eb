import type { Log } from 'busbar/sdk'
import { frameBytes, messagesFrame, partsOf } from './relay-frame.js'

/** A larger message stays in its process. */
const longestMessageBytes = 64 * 1024
/** What may wait for the database; more than that is dropped, and counted. */
const backlogBytes = 4 * 1024 * 1024
/** What a frame of messages needs besides them. */
const headBytes = 100

interface Item {
  readonly text: string
  readonly bytes: number
  readonly isMessage: boolean
}

/**
 * One frame under way at a time, so that the order stays; the messages that come meanwhile leave together
 * in the next. Too large for one frame: in pieces. Larger than 64 KiB, or too much at once: dropped.
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
    readonly signal: (data: string) => Promise<void>,
    readonly log: Log
  ) {}

  /** `data` is JSON. */
  send(channel: string, event: string, data: string): void {
    const text = `[${JSON.stringify(channel)},${JSON.stringify(event)},${data}]`
    const bytes = Buffer.byteLength(text)
    if (bytes > longestMessageBytes || this.#bytes + bytes > backlogBytes) {
      this.#dropped++
      this.#running ??= this.#run()
    } else if (bytes + headBytes > frameBytes) {
      this.say(messagesFrame(this.from, [text]))
    } else {
      this.#add({ text, bytes, isMessage: true })
    }
  }

  say(frame: string): void {
    for (const text of partsOf(this.from, frame, this.#frames++))
      this.#add({ text, bytes: text.length, isMessage: false })
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
        { dropped: this.#dropped, longestMessageBytes, backlogBytes },
        'live messages did not reach other processes: they were too large, or too many at once'
      )
      this.#dropped = 0
    }
    this.#running = undefined
  }

  #take(): string {
    let count = 0
    let bytes = headBytes
    for (const item of this.#items) {
      bytes += item.bytes + 1
      if (!item.isMessage || bytes > frameBytes) break
      count++
    }
    const taken = this.#items.splice(0, Math.max(1, count))
    for (const item of taken) this.#bytes -= item.bytes
    return count === 0
      ? taken.map(({ text }) => text).join('')
      : messagesFrame(
          this.from,
          taken.map(({ text }) => text)
        )
  }

  async #signal(frame: string): Promise<void> {
    try {
      await this.signal(frame)
      this.#isFailing = false
    } catch (error) {
      // Once for each outage; live data of that time is lost.
      if (!this.#isFailing) this.log.warn({ err: error }, 'live messages do not reach other processes')
      this.#isFailing = true
    }
  }
}
