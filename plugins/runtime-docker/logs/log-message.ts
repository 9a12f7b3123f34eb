import type { LogLine, OutputLine } from 'busbar/api/containers'
import type { ReadBytes } from '../answers/read-bytes.js'

/** A piece of output as the engine keeps it: a line, or a part of one that is longer than the engine keeps in one piece. */
export interface LogMessage extends LogLine {
  /** Its length as the engine sends it. */
  readonly bytes: number
}

const timeLength = 30
const space = 0x20
const letterZ = 0x5a
const lineFeed = 0x0a

// Everything a terminal would not show and PostgreSQL may not store; tab and escape (colours) stay.
const unprintable = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g

/** What is not shown as it stands there, byte by byte. Nearly no line has any of it. */
const special = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u00ff]/

/** Reads what stands between `start` and `end`: the time, a space, and the text with its end. */
export function readMessage(
  stream: OutputLine['stream'],
  read: ReadBytes,
  start: number,
  end: number
): LogMessage {
  const { bytes } = read
  const isEnd = bytes[end - 1] === lineFeed
  const textEnd = isEnd ? end - 1 : end
  const isUsual =
    textEnd >= start + timeLength &&
    bytes[start + timeLength - 1] === letterZ &&
    (textEnd === start + timeLength || bytes[start + timeLength] === space)
  if (isUsual) {
    const time = read.latin1.substring(start, start + timeLength)
    const textStart = Math.min(start + timeLength + 1, textEnd)
    const plain = read.latin1.substring(textStart, textEnd)
    const text = special.test(plain) ? shown(bytes.toString('utf8', textStart, textEnd)) : plain
    return message(stream, time, text, isEnd, end - start)
  }
  const whole = bytes.toString('utf8', start, textEnd)
  const [prefix = '', time] = /^(\S{1,40}) /.exec(whole.slice(0, 64)) ?? []
  const fixed = time === undefined ? undefined : fixedTime(time)
  const text = fixed === undefined ? whole : whole.slice(prefix.length)
  return message(stream, fixed ?? unknownTime, shown(text), isEnd, end - start)
}

const message = (
  stream: OutputLine['stream'],
  time: string,
  text: string,
  isEnd: boolean,
  bytes: number
): LogMessage => (isEnd ? { stream, time, text, bytes } : { stream, time, text, bytes, continues: true })

/** Of a time that is kept: as a part of what it came with it would keep all of that. */
export const ownCopy = (time: string): string => Buffer.from(time, 'latin1').toString('latin1')

const unknownTime = '1970-01-01T00:00:00.000000000Z'
const anyTime = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/

/** Engines but Docker's tell times of their own zone, and leave zeros out. */
function fixedTime(text: string): string | undefined {
  const [, seconds = '', fraction = '', zone = ''] = anyTime.exec(text) ?? []
  const at = Date.parse(`${seconds}${zone}`)
  return Number.isNaN(at)
    ? undefined
    : `${new Date(at).toISOString().slice(0, 19)}.${fraction.padEnd(9, '0')}Z`
}

/** What stands there in the end, where a program has written over it by carriage returns (a progress bar). */
function shown(text: string): string {
  const last = text.endsWith('\r') ? text.length - 2 : text.length - 1
  const overwritten = text.lastIndexOf('\r', last)
  return (overwritten < 0 ? text : text.slice(overwritten + 1)).replace(unprintable, '')
}
