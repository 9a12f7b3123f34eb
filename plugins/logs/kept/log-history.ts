import { type CursorRows, type Page, Turns } from 'busbar/sdk'
import type { ContainerLog, LogHistoryQuery } from '../api.js'
import { type KeptLine, levelOf, linesOf, streamOf } from './chunk.js'
import { type HistoryFilter, isWanted, readFilter } from './history-filter.js'
import { byPlace, HistoryOrder } from './history-order.js'
import { LineTimes } from './line-time.js'
import { idOf } from './log-id.js'
import type { KeptChunk, LogStore } from './log-store.js'

/** Chunks that are looked at by one statement: a few at first, as they are likely to be enough. */
const firstChunks = 8
const mostChunks = 256
/** A search that takes longer ends with what it has found, and says where the next one goes on. */
const longestSearchMs = 8000

interface FoundLine extends KeptLine {
  readonly ordinal: number
  readonly chunk: KeptChunk
}

/** Pages of what a source has written, the latest first. */
export class LogHistory {
  constructor(private readonly store: LogStore) {}

  async page(
    sourceId: string,
    query: LogHistoryQuery,
    { limit, offset, cursor }: Page & { readonly cursor?: string | undefined },
    signal: AbortSignal
  ): Promise<CursorRows<ContainerLog>> {
    const filter = readFilter(query, cursor)
    const type = await this.store.typeOf(sourceId)
    if (type === undefined || filter.session === null) return { rows: [], total: 0 }
    // One more, by which it is known whether there is another page.
    const { found, goesOnAt } = await this.#find(sourceId, filter, offset + limit + 1, signal)
    const times = new LineTimes()
    const lines = found.slice(offset, offset + limit)
    const last = lines.at(-1)
    const isWhole = found.length <= offset + limit && goesOnAt === undefined
    return {
      rows: lines.map(line => ({
        id: idOf(line),
        source_type: type,
        source_id: sourceId,
        level: levelOf(line.kind),
        stream: streamOf(line.kind),
        message: line.message,
        recorded_at: times.write(line),
        container_id: line.chunk.container_id,
        deployment_id: line.chunk.deployment_id
      })),
      total: await this.#total(sourceId, filter, isWhole ? found.length : undefined),
      next: isWhole ? undefined : found.length > offset + limit && last !== undefined ? idOf(last) : goesOnAt
    }
  }

  /** Counted where that is a look at the containers, or all are known. */
  async #total(
    sourceId: string,
    filter: HistoryFilter,
    known: number | undefined
  ): Promise<number | undefined> {
    if (filter.behind !== undefined) return undefined
    if (known !== undefined) return known
    const { mask, text, since, until, session } = filter
    const isUnfiltered =
      mask === 0xff &&
      text === undefined &&
      since === Number.NEGATIVE_INFINITY &&
      until === Number.POSITIVE_INFINITY
    return isUnfiltered ? await this.store.count(sourceId, session ?? undefined) : undefined
  }

  /** The first `count` lines, in order. `goesOnAt`: where the next search begins, when this one has ended for its time. */
  async #find(
    sourceId: string,
    filter: HistoryFilter,
    count: number,
    signal: AbortSignal
  ): Promise<{ readonly found: FoundLine[]; readonly goesOnAt: string | undefined }> {
    const order = new HistoryOrder<FoundLine>()
    const found: FoundLine[] = []
    const turns = new Turns()
    const endsAt = performance.now() + longestSearchMs
    let lookedAt: { readonly ordinal: number; readonly endsAt: number } | undefined
    for (let limit = firstChunks; ; limit = Math.min(limit * 4, mostChunks)) {
      signal.throwIfAborted()
      const { chunks, end, isLast } = await this.store.latest(sourceId, filter, lookedAt, limit)
      lookedAt = end ?? lookedAt
      const wanted: FoundLine[] = []
      for (const chunk of chunks) {
        for (const line of wantedOf(chunk, filter)) wanted.push(line)
        if (turns.isOver) await turns.pass()
      }
      found.push(...order.add(wanted, isLast ? Number.NEGATIVE_INFINITY : (lookedAt?.endsAt ?? 0)))
      if (isLast) found.push(...order.rest())
      if (found.length >= count || isLast) return { found: found.slice(0, count), goesOnAt: undefined }
      if (performance.now() > endsAt && lookedAt !== undefined) {
        // All that is later than what was looked at last is known.
        const place = { ms: lookedAt.endsAt + 1, nanos: 0, ordinal: 0 }
        return { found, goesOnAt: idOf(place) }
      }
    }
  }
}

function wantedOf(chunk: KeptChunk, filter: HistoryFilter): FoundLine[] {
  const { behind } = filter
  return linesOf(chunk).flatMap((line, index) => {
    if (!isWanted(filter, line)) return []
    const found = { ...line, ordinal: chunk.ordinal + index, chunk }
    return behind === undefined || byPlace(behind, found) < 0 ? [found] : []
  })
}
