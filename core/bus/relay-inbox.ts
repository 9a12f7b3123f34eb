import type { Log } from 'busbar/sdk'
import type { RelayFrame } from './relay-frame.js'

/** What may wait to be handed on; messages that come beyond are lost, and counted. */
const backlogCharacters = 16 * 1024 * 1024
/** How long frames may hold one turn of the event loop. */
const turnMs = 5

/**
 * Frames of other processes, handed on in their order: at once while few come, and else a little in each turn of the
 * event loop, as the system reads megabytes of them before it lets anything else have a turn.
 */
export class RelayInbox {
  #frames: string[] = []
  #characters = 0
  #endsAt: number | undefined
  #lost = 0
  #isClosed = false

  constructor(
    readonly from: string,
    readonly take: (frame: RelayFrame) => void,
    /** Called when some of what has come is not handed on. */
    readonly onGap: () => void,
    readonly log: Log
  ) {}

  /** Messages that did not get in. */
  get lost(): number {
    return this.#lost
  }

  add(text: string): void {
    // What this process says it hears too. `from` follows the kind.
    if (text.startsWith(`"from":"${this.from}"`, text.indexOf(',') + 1)) return
    if (this.#frames.length === 0 && this.#hasTime()) this.#handOn(text)
    else if (this.#characters + text.length <= backlogCharacters || !this.#isLost(text)) {
      this.#frames.push(text)
      this.#characters += text.length
    }
  }

  /** What waits is heard no more. */
  close(): void {
    this.#isClosed = true
    this.#frames = []
  }

  #hasTime(): boolean {
    if (this.#endsAt === undefined) {
      this.#endsAt = performance.now() + turnMs
      setImmediate(() => {
        this.#endsAt = undefined
        this.#goOn()
      })
      return true
    }
    return performance.now() < this.#endsAt
  }

  #goOn(): void {
    while (this.#frames.length > 0 && this.#hasTime()) {
      const text = this.#frames.shift() ?? ''
      this.#characters -= text.length
      this.#handOn(text)
    }
  }

  /** Who comes, goes and wants what is not to be missed, and takes little. */
  #isLost(text: string): boolean {
    const frame = JSON.parse(text) as RelayFrame
    if (frame.kind === 'messages') this.#lost += frame.messages.length
    else if (frame.kind !== 'piece' || frame.isOfControl === true) return false
    else if (frame.index + 1 === frame.count) this.#lost++
    this.onGap()
    return true
  }

  #handOn(text: string): void {
    if (this.#isClosed) return
    try {
      this.take(JSON.parse(text) as RelayFrame)
    } catch (error) {
      this.log.error({ err: error }, 'what another process has said could not be taken')
    }
  }
}
