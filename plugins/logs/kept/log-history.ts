import { type CursorRows, type Page, Turns } from 'busbar/sdk'
import type { ContainerLog, LogHistoryQuery } from '../api.js'
import { busy } from '../problems.js'
import { levelOf, linesOf, streamOf } from './chunk.js'
import { type FoundLine, FoundPage } from './found-page.js'
import { type HistoryFilter, isWanted, readFilter } from './history-filter.js'
import { byPlace, HistoryOrder } from './history-order.js'
import { LineTimes } from './line-time.js'
import { idOf } from './log-id.js'
import type { KeptChunk, LogStore, LookedAt } from './log-store.js'
import { ReadingTurns } from './reading-turns.js'

/** Chunks that are looked at by one statement: a few at first, as they are likely to be enough. */
const firstChunks = 8
const mostChunks = 256
/** A search that takes longer ends with what it has found, and says where the next one goes on. */
const longestSearchMs = 8000

/** Whose reading it is, and until when anybody wants it. */
interface Asking {
  readonly asker: string
  readonly signal: AbortSignal
}

/** Pages of what a source has written, the latest first. */
export class LogHistory {
  readonly #turns = new ReadingTurns()

  constructor(
    private readonly store: LogStore,
    private readonly longestMs = longestSearchMs
  ) {}

  async page(
    sourceId: string,
    query: LogHistoryQuery,
    { limit, offset, cursor }: Page & { readonly cursor?: string | undefined },
    asking: Asking
  ): Promise<CursorRows<ContainerLog>> {
    const filter = readFilter(query, cursor)
    const type = await this.store.typeOf(sourceId)
    if (type === undefined || filter.session === null) return { rows: [], total: 0 }
    const page = new FoundPage(offset, limit)
    const goesOnAt = await this.#fill(page, sourceId, filter, asking)
    const times = new LineTimes()
    const last = page.lines.at(-1)
    const isWhole = !page.hasMore && goesOnAt === undefined
    return {
      rows: page.lines.map(line => ({
        id: idOf(line),
        source_type: type,
        source_id: sourceId,
        level: levelOf(line.kind),
        stream: streamOf(line.kind),
        message: line.message,
        recorded_at: times.write(line),
        container_id: line.containerId,
        deployment_id: line.deploymentId
      })),
      total: await this.#total(sourceId, filter, isWhole ? page.seen : undefined),
      next: page.hasMore && last !== undefined ? idOf(last) : goesOnAt
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

  /** Until the page is full, or nothing is left. Tells where the next search begins, when this one has ended for its time. */
  async #fill(
    page: FoundPage,
    sourceId: string,
    filter: HistoryFilter,
    { asker, signal }: Asking
  ): Promise<string | undefined> {
    const order = new HistoryOrder<FoundLine>()
    const turns = new Turns(asker)
    const until = performance.now() + this.longestMs
    let lookedAt: LookedAt | undefined
    for (let limit = firstChunks; performance.now() < until; limit = Math.min(limit * 4, mostChunks)) {
      const isLast = await this.#turns.step(asker, { signal, until }, async () => {
        const { chunks, end, isLast } = await this.store.latest(sourceId, filter, lookedAt, limit)
        signal.throwIfAborted()
        lookedAt = end ?? lookedAt
        const wanted: FoundLine[] = []
        for (const chunk of chunks) {
          for (const line of wantedOf(chunk, filter)) wanted.push(line)
          if (turns.isOver) await turns.pass()
        }
        page.add(order.add(wanted, isLast ? Number.NEGATIVE_INFINITY : (lookedAt?.endsAt ?? 0)))
        if (isLast) page.add(order.rest())
        return isLast
      })
      if (page.hasMore || isLast === true) return undefined
    }
    if (lookedAt === undefined) throw busy()
    // All that is later than what was looked at last is known.
    return idOf({ ms: lookedAt.endsAt + 1, nanos: 0, ordinal: 0 })
  }
}

function wantedOf(chunk: KeptChunk, filter: HistoryFilter): FoundLine[] {
  const { behind } = filter
  const lines = linesOf(chunk)
  const wanted = lines.flatMap((line, index) => {
    if (!isWanted(filter, line)) return []
    const { container_id: containerId, deployment_id: deploymentId } = chunk
    const found = { ...line, ordinal: chunk.ordinal + index, containerId, deploymentId }
    return behind === undefined || byPlace(behind, found) < 0 ? [found] : []
  })
  // A part of a text holds all of it.
  return wanted.length === lines.length
    ? wanted
    : wanted.map(line => ({ ...line, message: Buffer.from(line.message).toString() }))
}
