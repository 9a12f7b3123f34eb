import type { SseFrame } from 'busbar/sdk'
import { linesOf } from './chunk.js'
import { LineTimes } from './line-time.js'
import { idOf, placeOf } from './log-id.js'
import type { LogPoll } from './log-poll.js'
import type { KeptChunk, LogStore } from './log-store.js'
import type { StreamReads } from './stream-reads.js'

/** What one reader holds, besides what its connection does. */
const readAtOnce = 64 * 1024

interface StreamParts {
  readonly store: Pick<LogStore, 'progress'>
  readonly reads: StreamReads
  /** Of all streams of the process. */
  readonly poll: LogPoll
}

interface Streamed {
  readonly sourceId: string
  /** There is a container whose lines come first. */
  readonly hasContainer: boolean
  /** That one; undefined where nothing is known of it yet. */
  readonly containerId: string | undefined
  /** The id of the last line that the reader has. */
  readonly after: string | undefined
  readonly follow: boolean
}

/** What a reader is told that there is nothing of. */
const noContainer = 'there is no container: deploy it first'
const ended: SseFrame = { event: 'done', data: 'log stream ended' }

/**
 * What a container has written, as server-sent events, and then what any container of the source writes, until the reader goes or the
 * source is removed. A reader that comes again gets all that was kept since.
 */
export async function* streamLogs(
  { sourceId, hasContainer, containerId, after, follow }: Streamed,
  { store, reads, poll }: StreamParts,
  signal: AbortSignal
): AsyncGenerator<readonly SseFrame[]> {
  const known = (await store.progress([sourceId])).get(sourceId)
  const end = known ?? 0
  const place = placeOf(after)
  // Anybody can write an id, and a database that was restored has fewer lines than readers have seen.
  const read = place !== undefined && place.ordinal < end ? place : undefined
  if (!hasContainer && read === undefined) {
    yield [{ event: 'error', data: noContainer }, ended]
    return
  }
  const begin = read === undefined ? 0 : read.ordinal + 1
  const ofContainer = read === undefined ? { containerId } : {}
  const kept = new Reading(
    begin,
    async from => await reads.after(sourceId, { from, below: end, ...ofContainer }, readAtOnce)
  )
  if (read !== undefined || containerId !== undefined)
    while (!signal.aborted && (await kept.read())) yield kept.take()
  if (follow) yield* comingLines({ sourceId, from: end, isKnown: known !== undefined }, poll, signal)
  if (!signal.aborted) yield [ended]
}

/** Until the source, which may not be known at first, is not known any more. */
async function* comingLines(
  {
    sourceId,
    from,
    isKnown
  }: { readonly sourceId: string; readonly from: number; readonly isKnown: boolean },
  poll: LogPoll,
  signal: AbortSignal
): AsyncGenerator<readonly SseFrame[]> {
  let wasKnown = isKnown
  let isGone = false
  const coming = new Reading(from, async at => {
    const chunks = await poll.after(sourceId, at, readAtOnce)
    isGone = chunks === undefined && wasKnown
    wasKnown ||= chunks !== undefined
    return chunks ?? []
  })
  while (!signal.aborted && !isGone) if (await coming.read()) yield coming.take()
}

/** What is read of a source, a piece after the other. While a reader takes its time, nothing else of it is held. */
class Reading {
  #frames: readonly SseFrame[] = []

  constructor(
    private from: number,
    private readonly after: (from: number) => Promise<readonly KeptChunk[]>
  ) {}

  /** False when there is nothing. */
  async read(): Promise<boolean> {
    const chunks = await this.after(this.from)
    const last = chunks.at(-1)
    if (last === undefined) return false
    this.#frames = framesOf(chunks, this.from)
    this.from = last.ordinal + last.lines
    return true
  }

  take(): readonly SseFrame[] {
    const frames = this.#frames
    this.#frames = []
    return frames
  }
}

/** Of pieces that streams share. */
const framesOfPiece = new WeakMap<readonly KeptChunk[], readonly SseFrame[]>()

/** Without those lines that the reader has; a piece is always read from the same line on. */
function framesOf(chunks: readonly KeptChunk[], from: number): readonly SseFrame[] {
  const known = framesOfPiece.get(chunks)
  if (known !== undefined) return known
  const times = new LineTimes()
  const frames = chunks.flatMap(chunk =>
    linesOf(chunk).flatMap((line, index) => {
      const ordinal = chunk.ordinal + index
      return ordinal < from
        ? []
        : [{ id: idOf({ ...line, ordinal }), data: `${times.write(line)} ${line.message}` }]
    })
  )
  framesOfPiece.set(chunks, frames)
  return frames
}
