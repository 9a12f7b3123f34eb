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

const smallSteps = 36 ** 2
const digits = Array.from({ length: smallSteps }, (_, n) => n.toString(36))
const twoDigits = digits.map(text => text.padStart(2, '0'))

/** Nanoseconds from one line to the next, in base 36. Most are less than two milliseconds. */
export function stepOf(ms: number, nanos: number): string {
  const step = ms * nanosInMs + nanos
  if (step < 0 || step >= smallSteps ** 2) return step.toString(36)
  const high = Math.floor(step / smallSteps)
  const low = step - high * smallSteps
  return high === 0 ? (digits[low] ?? '') : `${digits[high]}${twoDigits[low]}`
}

/** `clean` takes out what is not to be kept. Nearly always that is nothing of any line, so all are looked at together first. */
export function cleaned(chunk: Omit<Chunk, 'bytes'>, clean: (text: string) => string): Chunk {
  const { text, times, kinds } = chunk
  const kept = clean(text) === text ? text : cleanedEach(text, clean)
  return { ...chunk, text: kept, bytes: Buffer.byteLength(kept) + times.length + kinds.length + rowBytes }
}

const cleanedEach = (text: string, clean: (text: string) => string): string =>
  text
    .split('\n')
    .map(message => clean(message).replaceAll('\n', ' '))
    .join('\n')

const space = 0x20
const minus = 0x2d
const nine = 0x39

/** In the order in which they came. Read in one pass: parts of a text and numbers of them take longer to make than the lines. */
export function linesOf({
  beginsAt,
  times,
  kinds,
  text
}: Pick<Chunk, 'beginsAt' | 'times' | 'kinds' | 'text'>): KeptLine[] {
  const lines: KeptLine[] = []
  let sum = 0
  let textAt = 0
  for (let at = 0; at <= times.length; at++) {
    const isBack = times.charCodeAt(at) === minus
    if (isBack) at++
    let step = 0
    for (; at < times.length && times.charCodeAt(at) !== space; at++)
      step = step * 36 + digitOf(times.charCodeAt(at))
    sum += isBack ? -step : step
    const ms = Math.floor(sum / nanosInMs)
    const found = textAt > text.length ? -1 : text.indexOf('\n', textAt)
    const end = found < 0 ? text.length : found
    lines.push({
      ms: beginsAt + ms,
      nanos: sum - ms * nanosInMs,
      kind: kinds.charCodeAt(lines.length) - 48,
      message: text.slice(textAt, end)
    })
    textAt = end + 1
  }
  return lines
}

/** In base 36, as `toString` writes it. */
const digitOf = (code: number): number => (code <= nine ? code - 0x30 : code - 0x57)
