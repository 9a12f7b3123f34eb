import type { CursorRows, Database, Page, Tx } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { RequestLog } from '../schemas.js'
import { cursorOf, readCursor } from './cursor.js'
import { conditionsOf, type TraceFilter, type TracePlace } from './trace-filter.js'

/** A request with its place in the order in which requests were stored. */
export type StoredTrace = RequestLog & { readonly position: number; readonly recorded_at: Date }

/** What matches in all, however long it takes to say. */
export interface Totals {
  readonly total: number
  readonly c2xx: number
  readonly c3xx: number
  readonly c4xx: number
  readonly c5xx: number
  /** The 50th and 95th of 100; null where there are none. */
  readonly quantiles: readonly number[] | null
  readonly first_at: Date | null
  readonly last_at: Date | null
}

export interface MinuteCount {
  readonly ts: Date
  readonly count: number
}

export const traceColumns = `position, id, application_id, hostname, method, path, status_code, latency_ms, request_size, response_size,
  client_ip, user_agent, recorded_at`

/** A page is answered within so long, or not at all; a total within less, or without it. */
const pageMs = 8_000
const totalMs = 2_000
const summaryMs = 10_000
/** To count more rows is to read them all. */
const mostCounted = 100_000

/** Reads what is kept, the newest first. */
export class HistoryStore {
  constructor(private readonly db: Database) {}

  /** Rejects with 503 where it takes too long. */
  async page(
    filter: TraceFilter,
    { limit, offset, cursor }: Page & { readonly cursor?: string | undefined }
  ): Promise<CursorRows<StoredTrace>> {
    const behind = cursor === undefined ? undefined : placeOf(cursor)
    const { where, values } = conditionsOf(filter, behind)
    const rows = await this.#within(pageMs, async tx =>
      this.db.sql<StoredTrace>(
        `select ${traceColumns} from $schema.request ${where} order by recorded_at desc, position desc limit :limit offset :offset`,
        { ...values, limit: limit + 1, offset },
        tx
      )
    )
    const last = rows[limit - 1]
    return {
      rows: rows.slice(0, limit),
      total: await this.#total(
        filter,
        behind === undefined && offset === 0 && rows.length <= limit ? rows.length : undefined
      ),
      next:
        rows.length > limit && last !== undefined
          ? cursorOf({ recordedAt: last.recorded_at, position: last.position })
          : undefined
    }
  }

  async totals(filter: TraceFilter): Promise<Totals> {
    const { where, values } = conditionsOf(filter)
    const [row] = await this.#within(summaryMs, async tx =>
      this.db.sql<Totals>(
        `select count(*) as total,
          count(*) filter (where status_code between 200 and 299) as c2xx, count(*) filter (where status_code between 300 and 399) as c3xx,
          count(*) filter (where status_code between 400 and 499) as c4xx, count(*) filter (where status_code between 500 and 599) as c5xx,
          percentile_cont(array[0.5, 0.95]) within group (order by latency_ms) as quantiles,
          min(recorded_at) as first_at, max(recorded_at) as last_at
        from $schema.request ${where}`,
        values,
        tx
      )
    )
    if (row === undefined) throw new Error('a summary has no row')
    return row
  }

  /** Of minutes with requests, the oldest first. */
  async perMinute(filter: TraceFilter): Promise<readonly MinuteCount[]> {
    const { where, values } = conditionsOf(filter)
    return await this.#within(summaryMs, async tx =>
      this.db.sql<MinuteCount>(
        `select date_trunc('minute', recorded_at, 'UTC') as ts, count(*) as count from $schema.request ${where} group by 1 order by 1`,
        values,
        tx
      )
    )
  }

  /** Undefined where there are too many. */
  async #total(filter: TraceFilter, known: number | undefined): Promise<number | undefined> {
    if (known !== undefined) return known
    const { where, values } = conditionsOf(filter)
    const counted = this.#within(totalMs, async tx =>
      this.db.sql<{ total: number }>(
        `select count(*) as total from (select from $schema.request ${where} limit ${mostCounted + 1}) as counted`,
        values,
        tx
      )
    )
    const [row] = await counted.catch((error: unknown) => {
      if (isTooSlow(error)) return []
      throw error
    })
    return row === undefined || row.total > mostCounted ? undefined : row.total
  }

  async #within<T>(ms: number, work: (tx: Tx) => Promise<T>): Promise<T> {
    try {
      return await this.db.transaction(async tx => {
        await this.db.sql(`set local statement_timeout = ${ms}`, [], tx)
        return await work(tx)
      })
    } catch (error) {
      if ((error as { code?: unknown }).code === queryCanceled) throw problems.tooSlow()
      throw error
    }
  }
}

/** SQLSTATE. */
const queryCanceled = '57014'
const isTooSlow = (error: unknown): boolean =>
  (error as { readonly code?: unknown }).code === problems.tooSlow.code

function placeOf(cursor: string): TracePlace {
  const place = readCursor(cursor)
  if (place === undefined) throw problems.badCursor()
  return place
}
