import { isUuid } from 'busbar/sdk'
import { type LogHistoryQuery, logLevels, logStreams } from '../api.js'
import { type KeptLine, maskOf } from './chunk.js'
import { type LinePlace, placeOf } from './log-id.js'

/** Which lines are wanted. */
export interface HistoryFilter {
  /** A bit for each kind. */
  readonly mask: number
  /** In lower case; undefined: any text. */
  readonly text: string | undefined
  /** A part of it that the database looks for, which is cheaper there; what has it may have the text. */
  readonly fragment: string | undefined
  /** Milliseconds; inclusive. */
  readonly since: number
  /** Exclusive. */
  readonly until: number
  /** The beginning of the id of a container; null: lines of none, which there are not. */
  readonly session: string | null | undefined
  /** Only what comes behind this line in the history. */
  readonly behind: LinePlace | undefined
}

const timeShape = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/
const containerShape = /^[0-9a-f]{12,64}$/

/** What is malformed narrows nothing. */
export function readFilter(query: LogHistoryQuery, cursor: string | undefined): HistoryFilter {
  const level = logLevels.find(one => one === query.level)
  const stream = logStreams.find(one => one === query.stream)
  const { q, session } = query
  const text = q === undefined || q === '' ? undefined : q.toLowerCase()
  return {
    mask: maskOf(level, stream),
    text,
    fragment: text === undefined ? undefined : fragmentOf(text),
    since: timeOf(query.since) ?? Number.NEGATIVE_INFINITY,
    until: timeOf(query.until) ?? Number.POSITIVE_INFINITY,
    session: session === undefined || session === '' ? undefined : sessionOf(session),
    behind: cursor !== undefined && isUuid(cursor) ? placeOf(cursor) : undefined
  }
}

/**
 * A database compares it at each place of a text, so it is short. Letters beyond ASCII have a lower case that is not the same everywhere.
 */
const fragments = /[ -~]{1,32}/g

function fragmentOf(text: string): string | undefined {
  return text
    .match(fragments)
    ?.reduce((longest, fragment) => (fragment.length > longest.length ? fragment : longest))
}

function timeOf(query: string | undefined): number | undefined {
  // In a query a plus sign that was not escaped arrives as a space.
  const text = query?.replace(/ (\d\d:\d\d)$/, '+$1')
  if (text === undefined || !timeShape.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

/** What is no container has written nothing. */
const sessionOf = (session: string): string | null => (containerShape.test(session) ? session : null)

export const isWanted = (
  { mask, text, since, until }: HistoryFilter,
  { kind, ms, message }: KeptLine
): boolean =>
  (mask & (1 << kind)) !== 0 &&
  ms >= since &&
  ms < until &&
  (text === undefined || message.toLowerCase().includes(text))
