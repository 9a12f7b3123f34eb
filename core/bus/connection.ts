import type { SignedInCaller } from 'busbar/sdk'
import { WebSocket } from 'ws'
import type { BusCounts } from './bus-counts.js'
import type { Verdict } from './channel-access.js'
import { serverFrameText } from './client-frame.js'
import { FrameBudget } from './frame-budget.js'
import type { Follower } from './heartbeat.js'
import { batchOf, Outbox } from './outbox.js'
import { textFrame } from './text-frame.js'
import type { Topic } from './topic.js'

/** What one socket may hold, asked for or granted; further subscribes are refused. */
const subscriptionLimit = 1000
/** Access questions of one socket that run at a time; the others wait in order. */
const questionsAtOnce = 8
/** With so many waiting, nothing more is read from the socket. */
const waitingLimit = 32

/** The part of the hub that a connection talks to. */
export interface Subscribable {
  /** Whether the caller may hear the channel; undefined when that cannot be decided now; never throws. */
  decide(channel: string, caller: SignedInCaller): Promise<Verdict | undefined>
  join(channel: string, connection: Connection, project: string | undefined): void
  leave(channel: string, connection: Connection): void
}

interface Question {
  readonly channel: string
  isWithdrawn: boolean
}

/**
 * One accepted socket, with the identity it was opened with. Its subscribes and unsubscribes take effect
 * each as if the one before were done.
 */
export class Connection implements Follower {
  readonly topics = new Map<string, Topic>()
  readonly outbox: Outbox
  /** True from a ping to its answer. */
  #isUnanswered = false
  readonly #asked = new Map<string, Question>()
  #waiting: Question[] = []
  readonly #refused: string[] = []
  #running = 0
  readonly #budget = new FrameBudget(performance.now())
  /** Runs while frames beyond the budget are left in the socket. */
  #rest: NodeJS.Timeout | undefined

  constructor(
    readonly webSocket: WebSocket,
    readonly caller: SignedInCaller,
    readonly hub: Subscribable,
    onGivenUp: () => void,
    counts?: BusCounts
  ) {
    this.outbox = new Outbox(webSocket, onGivenUp, counts)
    webSocket.on('pong', () => {
      this.#isUnanswered = false
      this.spend()
    })
    webSocket.on('ping', () => {
      this.spend()
    })
  }

  ping(): void {
    this.#isUnanswered = true
    this.outbox.ping()
  }

  endIfSilent(): void {
    // A socket that is not being read from cannot answer.
    if (this.#isUnanswered && !this.webSocket.isPaused) this.webSocket.terminate()
  }

  /** A frame was read, whatever it says. Beyond the budget nothing is read for a while: what else the client sends waits with it. */
  spend(): void {
    const restMs = this.#budget.spend(performance.now())
    // The answer to a close must be read.
    if (restMs === 0 || this.webSocket.readyState !== WebSocket.OPEN) return
    clearTimeout(this.#rest)
    this.#rest = setTimeout(() => {
      this.#rest = undefined
      this.#readOn()
    }, restMs).unref()
    this.webSocket.pause()
  }

  subscribe(channel: string): void {
    if (this.topics.has(channel) || this.#asked.has(channel)) return
    if (this.topics.size + this.#asked.size >= subscriptionLimit) {
      this.#refuseSoon(channel)
      return
    }
    const question = { channel, isWithdrawn: false }
    this.#asked.set(channel, question)
    this.#waiting.push(question)
    if (this.#waiting.length >= waitingLimit) this.webSocket.pause()
    this.#next()
  }

  unsubscribe(channel: string): void {
    const question = this.#asked.get(channel)
    if (question !== undefined) {
      question.isWithdrawn = true
      this.#asked.delete(channel)
    }
    this.hub.leave(channel, this)
  }

  /** The socket closes: its subscriptions end. */
  end(): void {
    for (const channel of [...this.topics.keys(), ...this.#asked.keys()]) this.unsubscribe(channel)
    this.#waiting = []
    clearTimeout(this.#rest)
    this.#rest = undefined
    // The answer of the client to a close stands behind what it has sent.
    this.#readOn()
  }

  /** The credential it was opened with has ended. */
  revoke(): void {
    const granted = [...this.topics.keys()]
    this.end()
    this.#refuse(...granted)
    this.webSocket.close(1008, 'access denied')
  }

  /** What was granted is refused now, or cannot be decided. */
  lose(topic: Topic, verdict: Verdict | undefined): void {
    if (topic.record === undefined || !topic.has(this)) return
    if (verdict === undefined) {
      // A client that comes back asks for everything again.
      this.end()
      this.webSocket.close(1011, 'access could not be decided')
      return
    }
    this.hub.leave(topic.name, this)
    this.#refuse(topic.name)
  }

  #next(): void {
    while (this.#running < questionsAtOnce) {
      const question = this.#waiting.shift()
      if (question === undefined) break
      this.#running++
      void this.#answer(question).finally(() => {
        this.#running--
        this.#next()
      })
    }
    this.#readOn()
  }

  #readOn(): void {
    if (this.#waiting.length === 0 && this.#rest === undefined && this.webSocket.isPaused)
      this.webSocket.resume()
  }

  async #answer(question: Question): Promise<void> {
    const verdict = await this.hub.decide(question.channel, this.caller)
    if (!question.isWithdrawn) this.#asked.delete(question.channel)
    if (verdict?.isGranted !== true) this.#refuse(question.channel)
    else if (!question.isWithdrawn) this.hub.join(question.channel, this, verdict.project)
  }

  /** All frames of a chunk are heard in one turn: what is refused of them at once is answered in one write. */
  #refuseSoon(channel: string): void {
    this.#refused.push(channel)
    if (this.#refused.length > 1) return
    queueMicrotask(() => {
      this.#refuse(...this.#refused.splice(0))
    })
  }

  /** The one answer to every subscribe that is not granted, whatever the reason; in one write. */
  #refuse(...channels: readonly string[]): void {
    if (channels.length === 0) return
    this.outbox.send([
      batchOf(
        channels.map(channel => textFrame(serverFrameText(channel, 'error', '{"error":"access denied"}')))
      )
    ])
  }
}
