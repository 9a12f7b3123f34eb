import type { OutputLine } from 'busbar/api/containers'
import { type LogMessage, ownCopy } from './log-message.js'

type StreamName = OutputLine['stream']

/** The last message of a stream: the `count`th of its time. Parts of a long line all have the time of the first of them. */
interface StreamPlace {
  readonly time: string
  readonly count: number
}

/**
 * How far the log of a container has been read, in the order in which the engine keeps it. Nothing else says it: a time does not,
 * since parts of a line share one, and since the two streams are kept a moment out of the order of their times.
 */
export interface LogPlace {
  /** The stream of the message that was read last. */
  readonly last: StreamName
  readonly stdout?: StreamPlace | undefined
  readonly stderr?: StreamPlace | undefined
  /** The latest time of all that was read. */
  readonly latest: string
}

type Kept = Pick<LogMessage, 'stream' | 'time'>

/** Behind further messages. */
export function placeBehind(place: LogPlace | undefined, messages: readonly Kept[]): LogPlace | undefined {
  const streams = {
    stdout: { time: place?.stdout?.time ?? '', count: place?.stdout?.count ?? 0 },
    stderr: { time: place?.stderr?.time ?? '', count: place?.stderr?.count ?? 0 }
  }
  let last = place?.last
  let latest = place?.latest ?? ''
  for (const { stream, time } of messages) {
    const own = streams[stream]
    if (own.time === time) own.count++
    else {
      own.time = time
      own.count = 1
    }
    last = stream
    if (time > latest) latest = time
  }
  return last === undefined
    ? undefined
    : {
        last,
        stdout: placeOfStream(streams.stdout),
        stderr: placeOfStream(streams.stderr),
        latest: ownCopy(latest)
      }
}

const placeOfStream = ({ time, count }: StreamPlace): StreamPlace | undefined =>
  count === 0 ? undefined : { time: ownCopy(time), count }

const none = '-'

/** One line of text, at most 150 characters. */
export const placeText = ({ last, stdout, stderr, latest }: LogPlace): string =>
  [last, streamText(stdout), streamText(stderr), latest].join(' ')

const streamText = (place: StreamPlace | undefined): string =>
  place === undefined ? none : `${place.time}/${place.count}`

const streamForm = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)\/(\d{1,12})$/

/** Undefined for what is no place. */
export function readPlace(text: string): LogPlace | undefined {
  const [last, out = '', error = '', latest = '', ...more] = text.split(' ', 6)
  if ((last !== 'stdout' && last !== 'stderr') || more.length > 0) return undefined
  const stdout = readStream(out)
  const stderr = readStream(error)
  const place = { last, stdout: stdout ?? undefined, stderr: stderr ?? undefined, latest } as const
  const isWhole = stdout !== undefined && stderr !== undefined && place[last] !== undefined
  return isWhole && streamForm.test(`${latest}/1`) ? place : undefined
}

/** Null for a stream of which nothing was read; undefined for what is none. */
function readStream(text: string): StreamPlace | null | undefined {
  if (text === none) return null
  const [, time, count] = streamForm.exec(text) ?? []
  return time === undefined ? undefined : { time, count: Number(count) }
}
