import type { Log } from 'busbar/sdk'
import { type BusCounts, noBusCounts } from './bus-counts.js'
import type { Connection } from './connection.js'
import { batchOf, type FrameBatch } from './outbox.js'
import { inSlices } from './slices.js'
import type { Topic } from './topic.js'

/** Frames of one topic and those who were subscribed when they were published. */
interface Batch {
  readonly topic: Topic
  readonly frames: readonly Buffer[]
  readonly states: ReadonlySet<Buffer>
  readonly readers: readonly Connection[]
}

/** What may wait for the next round; publishers faster than that lose messages, counted. */
const pendingLimitBytes = 16 * 1024 * 1024
/** So much of a topic has room also then: one that is flooded takes nothing from the others. */
const topicRoomBytes = 64 * 1024
const writesPerStep = 32

/**
 * Hands frames to subscribers in rounds, one at a time: all that was published in a tick, or during the
 * round before, goes to each socket in one write. A round lets the loop turn every few milliseconds.
 */
export class FanOut {
  readonly #open = new Set<Topic>()
  #sealed: Batch[] = []
  #isScheduled = false
  #pendingBytes = 0
  #dropped = 0

  constructor(
    readonly log: Log,
    private readonly counts: BusCounts = noBusCounts()
  ) {}

  /** `isKept`: a state, of which the latest is not to be lost, or the end. */
  add(topic: Topic, frame: Buffer, isKept = false): void {
    this.counts.published++
    // Also when nothing else is said: the round tells of what was dropped.
    this.#schedule()
    if (!this.#hasRoom(topic, frame.length)) {
      if (!isKept) {
        this.#noteDropped()
        return
      }
      this.#leaveOutBeyond(topic)
      topic.pendingBeyond = frame
    }
    if (isKept) topic.pendingStates.add(frame)
    this.#pendingBytes += frame.length
    topic.pendingBytes += frame.length
    topic.pending.push(frame)
    this.#open.add(topic)
  }

  #leaveOutBeyond(topic: Topic): void {
    const before = topic.pendingBeyond
    if (before === undefined) return
    topic.pending.splice(topic.pending.lastIndexOf(before), 1)
    topic.pendingStates.delete(before)
    this.#pendingBytes -= before.length
    topic.pendingBytes -= before.length
    this.#noteDropped()
  }

  #noteDropped(): void {
    this.#dropped++
    this.counts.dropped++
  }

  #hasRoom(topic: Topic, bytes: number): boolean {
    return this.#pendingBytes + bytes <= pendingLimitBytes || topic.pendingBytes + bytes <= topicRoomBytes
  }

  /** To be called before a subscriber is added, who must not get what was published before. */
  seal(topic: Topic): void {
    if (topic.pending.length === 0) return
    const { pending: frames, pendingStates: states, readers } = topic
    this.#sealed.push({ topic, frames, states, readers })
    topic.pending = []
    topic.pendingStates = new Set()
    topic.pendingBeyond = undefined
    topic.pendingBytes = 0
    this.#open.delete(topic)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      void this.#run()
    })
  }

  async #run(): Promise<void> {
    for (const topic of this.#open) this.seal(topic)
    const round = this.#sealed
    this.#sealed = []
    this.#pendingBytes = 0
    this.#warnOfDropped()
    await inSlices(deliver(round))
    this.#isScheduled = false
    if (this.#open.size > 0 || this.#sealed.length > 0 || this.#dropped > 0) this.#schedule()
  }

  #warnOfDropped(): void {
    if (this.#dropped === 0) return
    this.log.warn(
      { dropped: this.#dropped },
      'messages were dropped: they were published faster than they could be written'
    )
    this.#dropped = 0
  }
}

function* deliver(round: readonly Batch[]): Generator<undefined, void> {
  // With one batch everybody gets one write anyway.
  const batchesOf = round.length > 1 ? new Map<Connection, FrameBatch[]>() : undefined
  let steps = 0
  for (const { topic, frames, states, readers } of round) {
    const batch = batchOf(frames, states.size === 0 ? undefined : { topic: topic.name, frames: states })
    const alone = [batch]
    for (const reader of readers) {
      // The same list: its subscribers have not changed since.
      if (readers !== topic.readers && !topic.has(reader)) continue
      if (batchesOf === undefined) reader.outbox.send(alone)
      else append(batchesOf, reader, batch)
      if (++steps % writesPerStep === 0) yield
    }
  }
  for (const [reader, batches] of batchesOf ?? []) {
    reader.outbox.send(batches)
    if (++steps % writesPerStep === 0) yield
  }
}

function append(map: Map<Connection, FrameBatch[]>, reader: Connection, batch: FrameBatch): void {
  const batches = map.get(reader)
  if (batches === undefined) map.set(reader, [batch])
  else batches.push(batch)
}
