import type { RequestSummary } from '../schemas.js'
import type { HistoryStore, MinuteCount, Totals } from './history-store.js'
import type { TraceFilter } from './trace-filter.js'

const minuteMs = 60_000
/** A day. */
const mostMinutes = 1_440

/** What the requests that match have come to. Rejects with 503 where they are too many to be looked through in time. */
export async function summaryOf(
  filter: TraceFilter,
  store: Pick<HistoryStore, 'totals' | 'perMinute'>,
  now: Date
): Promise<RequestSummary> {
  const totals = await store.totals(filter)
  const span = spanOf(filter, totals, now)
  const counts =
    span === undefined ? [] : await store.perMinute({ ...filter, from: laterOf(filter.from, span.from) })
  return {
    total: totals.total,
    class_counts: { c2xx: totals.c2xx, c3xx: totals.c3xx, c4xx: totals.c4xx, c5xx: totals.c5xx },
    p50_ms: rounded(totals.quantiles?.[0]),
    p95_ms: rounded(totals.quantiles?.[1]),
    error_rate: totals.total === 0 ? 0 : rounded((100 * totals.c5xx) / totals.total),
    per_minute: span === undefined ? [] : withGaps(span, counts)
  }
}

/** Minutes, the first and the last included. */
interface Span {
  readonly from: Date
  readonly to: Date
}

/** Undefined without a request, as there is no end to what has none. */
function spanOf(
  { from, to }: TraceFilter,
  { first_at: first, last_at: last }: Pick<Totals, 'first_at' | 'last_at'>,
  now: Date
): Span | undefined {
  if (first === null || last === null) return undefined
  // The end is not in it, and of what is to come nothing is known.
  const latest = Math.max(last.getTime(), now.getTime())
  const end = minuteOf(to === undefined ? last.getTime() : Math.min(to.getTime() - 1, latest))
  const begin = minuteOf((from ?? first).getTime())
  return { from: new Date(Math.max(begin, end - (mostMinutes - 1) * minuteMs)), to: new Date(end) }
}

/** Each minute with its count, those without any too. */
function withGaps({ from, to }: Span, counts: readonly MinuteCount[]): MinuteCount[] {
  const known = new Map(counts.map(({ ts, count }) => [ts.getTime(), count]))
  const length = (to.getTime() - from.getTime()) / minuteMs + 1
  return Array.from({ length }, (_, index) => {
    const ts = from.getTime() + index * minuteMs
    return { ts: new Date(ts), count: known.get(ts) ?? 0 }
  })
}

const minuteOf = (ms: number): number => Math.floor(ms / minuteMs) * minuteMs
const laterOf = (a: Date | undefined, b: Date): Date => (a !== undefined && a > b ? a : b)
const rounded = (value: number | undefined): number => Math.round((value ?? 0) * 100) / 100
