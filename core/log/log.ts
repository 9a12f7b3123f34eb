import type { Log } from 'busbar/sdk'
import { pino, destination as stdout, stdSerializers, stdTimeFunctions } from 'pino'
import { consoleLine } from './console-line.js'
import type { Redactor } from './redactor.js'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
export interface LineSink {
  write(line: string): unknown
}

interface LogOptions {
  readonly level: LogLevel
  readonly format: 'json' | 'console'
  readonly redactor: Redactor
  /** For `console` only. Default: on a terminal, unless NO_COLOR is set. */
  readonly isColored?: boolean
  /** Default: standard output, flushed when the process exits. */
  readonly destination?: LineSink
}

const ownMembers = ['level', 'time']
/** How long a line waits for others at most. */
const gatherMs = 20

/** The one log of the process. Every line passes the redactor on its way out, whoever wrote it. */
export function createLog({
  level,
  format,
  redactor,
  isColored = process.stdout.isTTY && !process.env.NO_COLOR,
  destination
}: LogOptions): Log {
  const sink = destination ?? gatheredOutput()
  const write = (line: string): unknown => {
    const clean = redactor.cleanLogLine(line, ownMembers)
    return sink.write(format === 'json' ? clean : consoleLine(clean, isColored))
  }
  return pino(
    {
      level,
      base: format === 'json' ? { pid: process.pid } : null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: serialized, error: serialized }
    },
    { write }
  )
}

/** An error may be anything that a plugin has thrown: one that cannot be read is told as such. */
function serialized(error: Error): unknown {
  try {
    return stdSerializers.err(error)
  } catch {
    return { type: 'Error', message: 'an error that cannot be read', stack: '' }
  }
}

/** Standard output. A busy process writes many lines at once: one by one they were a tenth of what a request cost. */
function gatheredOutput(): LineSink {
  // As bytes, which its type does not name: of text it measures all that waits with every line that comes.
  const output = stdout({ dest: 1, sync: false, minLength: 12 * 1024, contentMode: 'buffer' }) as unknown as {
    write(line: Buffer): boolean
    flush(): void
  }
  let flushes = false
  const flush = (): void => {
    flushes = false
    output.flush()
  }
  return {
    write(line) {
      // What still waits when the process exits is written by pino.
      if (!flushes) setTimeout(flush, gatherMs).unref()
      flushes = true
      return output.write(Buffer.from(line))
    }
  }
}
