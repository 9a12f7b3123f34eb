import type { SseFrame } from 'busbar/sdk'
import { framesOf, type Given } from './line-frames.js'
import { placeOf } from './log-id.js'
import type { LogPoll } from './log-poll.js'
import type { KeptChunk, LogStore } from './log-store.js'
import type { StreamReads } from './stream-reads.js'

/** By one query. */
const readAtOnce = 64 * 1024
/** A reader that takes longer holds nothing more meanwhile: it is read again. */
const holdMs = 1000

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
): AsyncGenerator<readonly SseFrame[] | Uint8Array> {
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
): AsyncGenerator<Uint8Array> {
  let wasKnown = isKnown
  let isGone = false
  const coming = new Reading(from, async at => {
    const chunks = await poll.after(sourceId, at, readAtOnce)
    isGone = chunks === undefined && wasKnown
    wasKnown ||= chunks !== undefined
    return chunks ?? []
  })
  const leave = poll.follow(sourceId)
  try {
    while (!signal.aborted && !isGone) if (await coming.read()) yield coming.take()
  } finally {
    leave()
  }
}

const nothing = new Uint8Array()

/** What is read of a source, a piece after the other. While a reader takes its time, nothing else of it is held. */
class Reading {
  #given: readonly Given[] = []
  #taken = 0
  #letGo: NodeJS.Timeout | undefined

  constructor(
    private from: number,
    private readonly after: (from: number) => Promise<readonly KeptChunk[]>
  ) {}

  /** False when there is nothing. */
  async read(): Promise<boolean> {
    clearTimeout(this.#letGo)
    if (this.#taken < this.#given.length) return true
    const chunks = await this.after(this.from)
    this.#given = givenOf(chunks, this.from)
    this.#taken = 0
    const last = chunks.at(-1)
    // Of what was removed in between nothing is given.
    if (last !== undefined && this.#given.length === 0) this.from = last.ordinal + last.lines
    return last !== undefined
  }

  take(): Uint8Array {
    const next = this.#given[this.#taken++]
    if (next === undefined) return nothing
    this.from = next.end
    if (this.#taken < this.#given.length)
      this.#letGo = setTimeout(() => {
        this.#given = []
      }, holdMs).unref()
    else this.#given = []
    return next.bytes
  }
}

/** Of pieces that streams share. */
const givenOfPiece = new WeakMap<readonly KeptChunk[], readonly Given[]>()

/** Without those lines that the reader has; a piece is always read from the same line on. */
function givenOf(chunks: readonly KeptChunk[], from: number): readonly Given[] {
  const known = givenOfPiece.get(chunks)
  if (known !== undefined) return known
  const given = chunks.flatMap(chunk => framesOf(chunk, from))
  givenOfPiece.set(chunks, given)
  return given
}
