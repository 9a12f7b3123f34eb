import type { Clock, CursorRows, Page } from 'busbar/sdk'
import type { RequestLog, RequestSummary } from '../schemas.js'
import type { HistoryStore } from './history-store.js'
import { ReadTurns } from './read-turns.js'
import { summaryOf } from './summary.js'
import type { TraceFilter } from './trace-filter.js'

/** Who asks, by the id of a user, and until when anybody wants the answer. */
interface Asking {
  readonly asker: string
  readonly signal: AbortSignal
}

/** What is kept, as pages and as a summary, for those who ask in turns. */
export class TraceHistory {
  readonly #turns = new ReadTurns()

  constructor(
    private readonly store: HistoryStore,
    private readonly clock: Pick<Clock, 'now'>
  ) {}

  async page(
    filter: TraceFilter,
    page: Page & { readonly cursor?: string | undefined },
    { asker, signal }: Asking
  ): Promise<CursorRows<RequestLog>> {
    return await this.#turns.take(asker, signal, async () => await this.store.page(filter, page))
  }

  async summary(filter: TraceFilter, { asker, signal }: Asking): Promise<RequestSummary> {
    return await this.#turns.take(
      asker,
      signal,
      async () => await summaryOf(filter, this.store, this.clock.now())
    )
  }
}
