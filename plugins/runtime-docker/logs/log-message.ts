import type { LogLine, OutputLine } from 'busbar/api/containers'

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

/** Reads what stands between `start` and `end`: the time, a space, and the text with its end. */
export function readMessage(
  stream: OutputLine['stream'],
  bytes: Buffer,
  start: number,
  end: number
): LogMessage {
  const isEnd = bytes[end - 1] === lineFeed
  const textEnd = isEnd ? end - 1 : end
  const isUsual =
    textEnd >= start + timeLength &&
    bytes[start + timeLength - 1] === letterZ &&
    (textEnd === start + timeLength || bytes[start + timeLength] === space)
  if (isUsual) {
    const time = bytes.toString('latin1', start, start + timeLength)
    const text = bytes.toString('utf8', Math.min(start + timeLength + 1, textEnd), textEnd)
    return message(stream, time, text, isEnd, end - start)
  }
  const whole = bytes.toString('utf8', start, textEnd)
  const [prefix = '', time] = /^(\S{1,40}) /.exec(whole.slice(0, 64)) ?? []
  const fixed = time === undefined ? undefined : fixedTime(time)
  const text = fixed === undefined ? whole : whole.slice(prefix.length)
  return message(stream, fixed ?? unknownTime, text, isEnd, end - start)
}

const message = (
  stream: OutputLine['stream'],
  time: string,
  text: string,
  isEnd: boolean,
  bytes: number
): LogMessage =>
  isEnd
    ? { stream, time, text: shown(text), bytes }
    : { stream, time, text: shown(text), bytes, continues: true }

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
