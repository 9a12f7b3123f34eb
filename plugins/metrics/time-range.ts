import { instantIn } from 'busbar/sdk'
import { problems } from './problems.js'

const hourMs = 3_600_000
/** How far back each reaches. */
export const ranges = {
  '1h': hourMs,
  '6h': 6 * hourMs,
  '24h': 24 * hourMs,
  '7d': 168 * hourMs,
  '14d': 336 * hourMs
} as const
const usualRange = '1h'

/** The most that one answer holds. */
export const mostPoints = 1000

export interface TimeRange {
  /** Inclusive. */
  readonly from: Date
  /** Exclusive. */
  readonly to: Date
}

interface RangeQuery {
  readonly range?: string
  readonly from?: string
  readonly to?: string
}

/** `from` and `to` where they are given, else `range` until now; an empty value is none. What is malformed is refused by name. */
export function readRange(query: RangeQuery, now: Date): TimeRange {
  const lengthMs = lengthOf(query.range)
  const to = timeOf('to', query.to) ?? now
  const from = timeOf('from', query.from) ?? new Date(to.getTime() - lengthMs)
  if (from > to) throw problems.reversed()
  return { from, to }
}

function lengthOf(range: string | undefined): number {
  if (range === undefined || range === '') return ranges[usualRange]
  const found = Object.entries(ranges).find(([name]) => name === range)
  if (found === undefined) throw problems.badRange({ ranges: Object.keys(ranges).join(', ') })
  return found[1]
}

function timeOf(field: string, text: string | undefined): Date | undefined {
  if (text === undefined || text === '') return undefined
  const time = instantIn(text)
  if (time === undefined) throw problems.badTime({ field })
  return time
}

/** Points that stand for so many seconds each, and are kept for so long: the longer, the coarser. */
export interface Tier {
  readonly stepSeconds: number
  readonly keptHours: number
}

/** Of tiers from the finest to the coarsest, the first that reaches back to the beginning of the range, else the last. */
export function tierFor(tiers: readonly [Tier, ...Tier[]], { from }: TimeRange, now: Date): Tier {
  const ageMs = now.getTime() - from.getTime()
  return tiers.find(({ keptHours }) => ageMs <= keptHours * hourMs) ?? tiers.at(-1) ?? tiers[0]
}

/** How long each of the points of an answer is, so that there are no more than `mostPoints`; ms. */
export const widthOf = ({ from, to }: TimeRange, { stepSeconds }: Tier): number =>
  Math.max(stepSeconds * 1000, Math.ceil((to.getTime() - from.getTime()) / mostPoints))

/** Since when points of a tier are kept. */
export const keptSince = ({ keptHours }: Tier, retentionHours: number, now: Date): Date =>
  new Date(now.getTime() - Math.min(keptHours, retentionHours) * hourMs)
