import { type LogLevel, type LogStream, logLevels, logStreams } from '../api.js'
import type { LineTime } from './line-time.js'

/** A line as it is kept, in a chunk with its neighbours. */
export interface KeptLine extends LineTime {
  /** Its level and its stream, see `kindOf`. */
  readonly kind: number
  readonly message: string
}

/** Lines of one container that were kept together, in the order in which they came. */
export interface Chunk {
  readonly lines: number
  /** Of all that is kept of them, before it is compressed. */
  readonly bytes: number
  /** The earliest of their times, to the millisecond, and the latest. */
  readonly beginsAt: number
  readonly endsAt: number
  /** A bit for each kind that is among them. */
  readonly mask: number
  /** Nanoseconds from the line before, of the first one from `beginsAt`; in base 36. */
  readonly times: string
  /** A digit for each line. */
  readonly kinds: string
  /** One line after the other. */
  readonly text: string
}

/** A reader of a stream holds one of them at a time. */
export const mostLines = 400
export const mostBytes = 32 * 1024
/** From the earliest of its lines to the latest. */
export const longestSpanMs = 10 * 60_000

/** What a row and its places in the indexes take, beside what is in them. */
const rowBytes = 250

const nanosInMs = 1_000_000

export const kindOf = (level: LogLevel, stream: LogStream): number =>
  logLevels.indexOf(level) * logStreams.length + logStreams.indexOf(stream)

export const levelOf = (kind: number): LogLevel => logLevels[kind >> 1] ?? 'info'
export const streamOf = (kind: number): LogStream => logStreams[kind & 1] ?? 'stdout'

/** The bits of all kinds of a level, and of a stream; undefined is any. */
export function maskOf(level: LogLevel | undefined, stream: LogStream | undefined): number {
  let mask = 0
  for (const one of logLevels)
    for (const other of logStreams)
      if ((level ?? one) === one && (stream ?? other) === other) mask |= 1 << kindOf(one, other)
  return mask
}

/** All of them, in as few chunks as their limits allow. `clean` takes out what is not to be kept; it is given one line or many. */
export function chunksOf(lines: readonly KeptLine[], clean: (text: string) => string): Chunk[] {
  const chunks: Chunk[] = []
  let from = 0
  let bytes = 0
  let earliest = Number.POSITIVE_INFINITY
  let latest = Number.NEGATIVE_INFINITY
  for (const [index, { ms, message }] of lines.entries()) {
    const size = Buffer.byteLength(message) + 1
    const spanMs = Math.max(latest, ms) - Math.min(earliest, ms)
    const isFull = index - from >= mostLines || bytes + size > mostBytes || spanMs > longestSpanMs
    if (isFull && index > from) {
      chunks.push(chunkOf(lines.slice(from, index), clean))
      from = index
      bytes = 0
      earliest = Number.POSITIVE_INFINITY
      latest = Number.NEGATIVE_INFINITY
    }
    bytes += size
    earliest = Math.min(earliest, ms)
    latest = Math.max(latest, ms)
  }
  if (from < lines.length) chunks.push(chunkOf(lines.slice(from), clean))
  return chunks
}

function chunkOf(lines: readonly KeptLine[], clean: (text: string) => string): Chunk {
  let beginsAt = Number.POSITIVE_INFINITY
  let endsAt = Number.NEGATIVE_INFINITY
  let mask = 0
  let kinds = ''
  let text = ''
  for (const { ms, kind, message } of lines) {
    if (ms < beginsAt) beginsAt = ms
    if (ms > endsAt) endsAt = ms
    mask |= 1 << kind
    kinds += kind
    text += text === '' && kinds.length === 1 ? message : `\n${message}`
  }
  let times = ''
  let beforeMs = beginsAt
  let beforeNanos = 0
  for (const { ms, nanos } of lines) {
    const step = ((ms - beforeMs) * nanosInMs + nanos - beforeNanos).toString(36)
    times += times === '' ? step : ` ${step}`
    beforeMs = ms
    beforeNanos = nanos
  }
  const kept = clean(text) === text ? text : cleanedEach(lines, clean)
  return {
    lines: lines.length,
    bytes: Buffer.byteLength(kept) + times.length + kinds.length + rowBytes,
    beginsAt,
    endsAt,
    mask,
    times,
    kinds,
    text: kept
  }
}

/** Nearly always nothing is taken out of any, so they are looked at together first. */
const cleanedEach = (lines: readonly KeptLine[], clean: (text: string) => string): string =>
  lines.map(({ message }) => clean(message).replaceAll('\n', ' ')).join('\n')

/** In the order in which they came. */
export function linesOf({
  beginsAt,
  times,
  kinds,
  text
}: Pick<Chunk, 'beginsAt' | 'times' | 'kinds' | 'text'>): KeptLine[] {
  const messages = text.split('\n')
  let nanos = 0
  return times.split(' ').map((step, index) => {
    nanos += Number.parseInt(step, 36)
    const ms = Math.floor(nanos / nanosInMs)
    return {
      ms: beginsAt + ms,
      nanos: nanos - ms * nanosInMs,
      kind: kinds.charCodeAt(index) - 48,
      message: messages[index] ?? ''
    }
  })
}
