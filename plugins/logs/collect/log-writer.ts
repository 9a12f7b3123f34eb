import type { LogBatch, LogLine } from 'busbar/api/containers'
import { Backoff, type Clock, type Log, Turns, Wakeable } from 'busbar/sdk'
import { type Chunk, cleaned } from '../kept/chunk.js'
import { LineTimes } from '../kept/line-time.js'
import type { KeptChunk } from '../kept/log-store.js'
import type { CollectStore, KnownContainer, Turn } from './collect-store.js'
import { type Portion, WaitingLines } from './waiting-lines.js'

/** Lines of one container that were kept, for those who listen. */
export interface KeptLines {
  readonly container: KnownContainer
  /** Of the first of them; the others follow. */
  readonly ordinal: number
  readonly lines: number
  readonly chunks: readonly KeptChunk[]
  /** Those of them that are known to be kept; undefined where the database's answer was lost. */
  readonly known: readonly KeptChunk[] | undefined
}

interface WriterParts {
  readonly store: CollectStore
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
  readonly clean: (text: string) => string
  /** Told of what has been kept, in its order; no more of that container is kept until it has settled. Never rejects. */
  readonly onKept: (kept: KeptLines) => Promise<void>
  /** Told how much is kept of a source now. */
  readonly onGrown: (sourceId: string, bytes: number) => Promise<void>
}

/** A line that comes alone waits for others for so long; further ones wait longer. */
const firstWaitMs = 50
const usualWaitMs = 500
/** When so much has come, nothing waits. */
const enoughBytes = 256 * 1024
/** By one statement. */
const mostBytes = 2 * 1024 * 1024
/** So much of one container waits before it has to, and so much of all. */
const roomOfOne = 2 * 1024 * 1024
const roomOfAll = 16 * 1024 * 1024
/** So much that has been kept may wait to be told before nothing more is kept of anybody. */
const mostUntoldBytes = 8 * 1024 * 1024

/** Keeps lines in batches, a few times a second at most unless there are many, and no more in memory than it has room for. */
export class LogWriter {
  readonly #known = new WeakMap<KnownContainer, WaitingLines>()
  /** Those of which something is to be kept, in their turn. */
  readonly #waiting = new Set<WaitingLines>()
  /** Those whose last lines are still being told. */
  readonly #untold = new Set<WaitingLines>()
  readonly #times = new LineTimes()
  readonly #turns = new Turns()
  /** Of all that is to be kept, and of those of which something is to be kept now. */
  #bytes = 0
  #dueBytes = 0
  #untoldBytes = 0
  #room: Array<() => void> = []
  readonly #change = new Wakeable()
  #writtenAt = Number.NEGATIVE_INFINITY
  /** What comes behind much is likely to be its end, which somebody waits for. */
  #wasMuch = false
  #isClosed = false

  constructor(
    private readonly parts: WriterParts,
    private turn: Turn
  ) {}

  /** Takes lines; resolves when there is room for more of this container, or nothing is kept any more. */
  async add(container: KnownContainer, { lines, place, isGap }: LogBatch): Promise<void> {
    const waiting = this.#known.get(container) ?? new WaitingLines(container, this.#times)
    this.#known.set(container, waiting)
    const [first] = lines
    const before = waiting.bytes
    waiting.add(isGap === true && first !== undefined ? [missingBefore(first), ...lines] : lines, place)
    this.#bytes += waiting.bytes - before
    if (!this.#untold.has(waiting)) {
      this.#waiting.add(waiting)
      this.#dueBytes += waiting.bytes - before
      this.#change.wake()
    }
    await this.#until(() => waiting.bytes <= roomOfOne && this.#bytes <= roomOfAll)
  }

  /** Resolves when all that has come of this container is kept, or nothing is kept any more. */
  async kept(container: KnownContainer): Promise<void> {
    const waiting = this.#known.get(container)
    await this.#until(() => waiting === undefined || waiting.isEmpty)
  }

  /** Keeps what comes until `signal` aborts. Rejects when another collector has begun. */
  async run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(this.parts.clock, { firstMs: 500, longestMs: 5000 })
    while (!signal.aborted) {
      await this.#untilDue(signal)
      if (signal.aborted) return
      this.#writtenAt = performance.now()
      this.#wasMuch = this.#dueBytes >= enoughBytes
      const taken = this.#takeTurns()
      while (!(await this.#write(taken, backoff))) {
        await backoff.pause(signal)
        if (signal.aborted) return
      }
    }
  }

  /** Nothing is kept from now on. Who waits for room goes on; what has not been kept is read again by who follows next. */
  close(): void {
    this.#isClosed = true
    this.#tellWaiting()
  }

  /** Waits until something is to be kept, and then for what may still come. */
  async #untilDue(signal: AbortSignal): Promise<void> {
    while ((this.#waiting.size === 0 || this.#untoldBytes > mostUntoldBytes) && !signal.aborted)
      await this.#change.sleep(signal)
    const waitMs = this.#wasMuch ? firstWaitMs : usualWaitMs
    const dueAt = Math.max(performance.now() + firstWaitMs, this.#writtenAt + waitMs)
    while (!signal.aborted && this.#dueBytes < enoughBytes) {
      const left = dueAt - performance.now()
      if (left <= 0) return
      await this.#change.sleep(signal, left)
    }
  }

  /** The containers take turns: what is left of one that has much comes behind the others. */
  #takeTurns(): Taken[] {
    const taken: Taken[] = []
    let sum = 0
    for (const waiting of [...this.#waiting]) {
      if (sum >= mostBytes) break
      const portion = waiting.next()
      if (portion !== undefined) taken.push({ waiting, portion })
      sum += portion?.bytes ?? 0
      this.#waiting.delete(waiting)
      this.#waiting.add(waiting)
    }
    return taken
  }

  /** False when it is to be tried again. */
  async #write(taken: readonly Taken[], backoff: Backoff): Promise<boolean> {
    const { store, log, clean } = this.parts
    const kept = taken.map(({ waiting, portion: { place, chunks } }) => ({
      key: waiting.container.key,
      place,
      chunks: chunks.map(chunk => cleaned(chunk, clean))
    }))
    const count = taken.reduce((sum, { portion }) => sum + portion.lines, 0)
    const { epoch, nextOrdinal } = this.turn
    let first: number
    let written: Awaited<ReturnType<typeof store.write>>
    try {
      written = await store.write(this.turn, kept)
      if (written === undefined) {
        const now = await store.turn(epoch)
        if (now?.nextOrdinal !== nextOrdinal + count) throw new TurnLost()
        // It had been kept, and the answer was lost.
        first = nextOrdinal
      } else first = written.first
    } catch (error) {
      if (error instanceof TurnLost) throw error
      log[backoff.isFresh ? 'warn' : 'debug'](
        { err: error },
        'lines of containers could not be kept; it is tried again, and nothing more is read meanwhile'
      )
      return false
    }
    backoff.reset()
    this.turn = { epoch, nextOrdinal: nextOrdinal + count }
    for (const one of taken) this.#release(one)
    let ordinal = first
    for (const [at, { waiting, portion }] of taken.entries()) {
      const { container } = waiting
      const chunks = keptChunks(container, ordinal, kept[at]?.chunks ?? [])
      const isKnown = written?.keys.includes(container.key) ?? false
      const known = written === undefined ? undefined : isKnown ? chunks : []
      void this.#tell(waiting, portion, { container, ordinal, lines: portion.lines, chunks, known })
      ordinal += portion.lines
      if (this.#turns.isOver) await this.#turns.pass()
    }
    for (const { id, bytes } of written?.sources ?? []) await this.parts.onGrown(id, bytes)
    return true
  }

  /** Meanwhile the others are kept: a loud one whose listeners are told slowly must hold up none of them. */
  async #tell(waiting: WaitingLines, { bytes }: Portion, kept: KeptLines): Promise<void> {
    this.#untold.add(waiting)
    this.#untoldBytes += bytes
    if (this.#waiting.delete(waiting)) this.#dueBytes -= waiting.bytes
    await this.parts.onKept(kept)
    this.#untold.delete(waiting)
    this.#untoldBytes -= bytes
    if (!waiting.isEmpty) {
      this.#waiting.add(waiting)
      this.#dueBytes += waiting.bytes
    }
    this.#change.wake()
  }

  #release({ waiting, portion }: Taken): void {
    waiting.release(portion)
    this.#bytes -= portion.bytes
    this.#dueBytes -= portion.bytes
    if (waiting.isEmpty) this.#waiting.delete(waiting)
    this.#tellWaiting()
  }

  #tellWaiting(): void {
    const waited = this.#room
    this.#room = []
    for (const look of waited) look()
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo() && !this.#isClosed)
      await new Promise<void>(resolve => {
        this.#room.push(resolve)
      })
  }
}

/** As they would be read. */
function keptChunks(
  { containerId, deploymentId }: KnownContainer,
  ordinal: number,
  chunks: readonly Chunk[]
): KeptChunk[] {
  let next = ordinal
  return chunks.map(({ lines, beginsAt, times, kinds, text }) => {
    const own = { ordinal: next, lines, beginsAt, times, kinds, text }
    next += lines
    return { ...own, container_id: containerId, deployment_id: deploymentId ?? null }
  })
}

interface Taken {
  readonly waiting: WaitingLines
  readonly portion: Portion
}

/** Another collector has begun. */
class TurnLost extends Error {
  constructor() {
    super('another process keeps the lines of containers')
  }
}

const missingBefore = ({ time, stream }: LogLine): LogLine => ({
  stream,
  time,
  text: '[warning] output is missing here: the engine had thrown it away before it could be read'
})
