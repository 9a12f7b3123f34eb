import type { Log } from 'busbar/sdk'
import { type Logger, pino, destination as stdout } from 'pino'
import { consoleLine } from './console-line.js'
import { type Cut, errorExcerpt, excerptOf, isError } from './excerpt.js'
import { JsonMembers } from './json-members.js'
import { longestNeedle } from './needle-set.js'
import { plainLine, writesAs } from './plain-line.js'
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
const longestMessage = 8 * 1024
/** `user:password` of an address is known by the `@` behind it, which may be cut off. */
const unfinishedUser = /:\/\/[^\s/?#"'<>]*$/
/** What the parts of a line add up to is less but for bindings, and for text of which each character takes six. */
const longestLine = 64 * 1024

/** The one log of the process. Every line of kernel and plugins passes the redactor on its way out. */
export function createLog({
  level,
  format,
  redactor,
  isColored = process.stdout.isTTY && !process.env.NO_COLOR,
  destination
}: LogOptions): Log {
  const sink = destination ?? standardOutput()
  // Looked through for secrets first: none of which a part is cut off would be found.
  const cut: Cut = (text, max) =>
    text.length <= max
      ? text
      : `${redactor.cleanLogText(text.slice(0, max + longestNeedle).replace(unfinishedUser, '://')).slice(0, -longestNeedle)}…`
  const write = (line: string): unknown => {
    const clean = redactor.cleanLogLine(line.length > longestLine ? headOf(line, cut) : line, ownMembers)
    return sink.write(format === 'json' ? clean : consoleLine(clean, isColored))
  }
  const root: Logger = pino(
    {
      level,
      base: format === 'json' ? { pid: process.pid } : null,
      timestamp: timeMember,
      formatters: { level: label => ({ level: label }) },
      // What is logged is an excerpt already.
      serializers: { err: (error: unknown) => error },
      hooks: {
        logMethod(args, log, level) {
          try {
            const isPlain = args.length === 2 && typeof args[1] === 'string' && writesAs(this, root)
            const short = isPlain && args[0] instanceof JsonMembers ? args : shortened(args, cut)
            const [members, message] = short
            if (isPlain && isObject(members))
              write(plainLine(this, level, timeMember(), members, message as string))
            else log.apply(this, short as Parameters<typeof log>)
          } catch (error) {
            // What logs goes on all the same, and not where it has caught something.
            log.call(this, { err: errorExcerpt(error as Error, cut) }, 'a line could not be written')
          }
        }
      }
    },
    { write }
  )
  const { child } = root
  // All that descend from it have this one, and write what they are given into each of their lines.
  root.child = function (this: Logger, bindings: unknown, options: unknown) {
    return Reflect.apply(child, this, [membersOf(bindings, cut), options])
  } as typeof child
  return root
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

let second = Number.NaN
let secondText = ''

/** The time as pino puts it into a line. The text of a second is made once. */
function timeMember(): string {
  const now = Date.now()
  const ms = now % 1000
  if (now - ms !== second) {
    second = now - ms
    secondText = `,"time":"${new Date(second).toISOString().slice(0, -'000Z'.length)}`
  }
  return `${secondText}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z"`
}

/** The arguments of a call, each as much of it as a line has room for. */
function shortened(args: readonly unknown[], cut: Cut): unknown[] {
  return args.map(argument => {
    if (typeof argument === 'string') return cut(argument, longestMessage)
    if (typeof argument === 'symbol' || typeof argument === 'function')
      return cut(String(argument), longestMessage)
    return isObject(argument) ? membersOf(argument, cut) : argument
  })
}

function membersOf(value: unknown, cut: Cut): object {
  try {
    if (value instanceof JsonMembers) return value.parsed()
    // As pino has it; without a message, that of the error is that of the line.
    return isError(value) ? { err: errorExcerpt(value, cut) } : isObject(value) ? excerptOf(value, cut) : {}
  } catch {
    return { unreadable: true }
  }
}

/** What is left of a line that is too long all the same. */
function headOf(line: string, cut: Cut): string {
  const { level, time, pid, plugin, msg } = JSON.parse(line) as Record<string, unknown>
  const text = (value: unknown) => (value === undefined ? undefined : cut(String(value), 1024))
  return `${JSON.stringify({ level, time, pid, plugin: text(plugin), msg: text(msg) ?? '', cutFrom: line.length })}\n`
}

const gatherLength = 12 * 1024

let output: LineSink | undefined

/** One for all logs of the process. */
function standardOutput(): LineSink {
  output ??= gatheredOutput()
  return output
}

/** A busy process writes many lines at once: one by one they were a tenth of what a request cost. */
function gatheredOutput(): LineSink {
  // As bytes, which its type does not name: of text it measures all that waits with every piece that comes.
  const output = stdout({
    dest: 1,
    sync: false,
    minLength: gatherLength,
    contentMode: 'buffer'
  }) as unknown as {
    write(lines: Buffer): boolean
    flush(): void
  }
  let lines = ''
  let flushes = false
  const hand = (): void => {
    if (lines === '') return
    const text = lines
    lines = ''
    output.write(Buffer.from(text))
  }
  const flush = (): void => {
    flushes = false
    hand()
    output.flush()
  }
  // Before pino, which then writes what still waits when the process exits.
  process.prependListener('exit', hand)
  process.prependListener('beforeExit', hand)
  return {
    write(line) {
      lines += line
      if (lines.length >= gatherLength) hand()
      if (!flushes) setTimeout(flush, gatherMs).unref()
      flushes = true
    }
  }
}
