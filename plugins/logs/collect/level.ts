import type { LogLevel } from '../api.js'

/** What says of a line how serious it is stands near its beginning. */
const lookedAt = 1000

// Colours, and the other sequences that speak to a terminal.
const escapes = /\u001b\[[0-9;:]*[A-Za-z]/g

const byName: Readonly<Record<string, LogLevel>> = {
  trace: 'debug',
  verbose: 'debug',
  debug: 'debug',
  dbg: 'debug',
  dbug: 'debug',
  silly: 'debug',
  default: 'info',
  info: 'info',
  information: 'info',
  informational: 'info',
  inf: 'info',
  notice: 'info',
  note: 'info',
  log: 'info',
  system: 'info',
  success: 'info',
  http: 'info',
  warn: 'warning',
  warning: 'warning',
  wrn: 'warning',
  error: 'error',
  err: 'error',
  eror: 'error',
  severe: 'error',
  fatal: 'error',
  critical: 'error',
  crit: 'error',
  alert: 'error',
  panic: 'error',
  emerg: 'error',
  emergency: 'error'
}

/** `[WARN] …`, perhaps behind a time. */
const tag = /^[\s\d:.,TZ/+-]{0,40}\[\s{0,3}([A-Za-z]{3,13})\s{0,3}\]/
/** As the platform's own log for people: `12:34:56.789 WARN  …`. */
const ownConsole = /^\d\d:\d\d:\d\d\.\d{3} (TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b/
const jsonKey = /"(?:level|severity|lvl|levelname)"\s{0,3}:\s{0,3}(?:"([A-Za-z]{3,13})"|(\d{1,3})\b)/i
/** As databases write: `2026-01-02 03:04:05 UTC [7] ERROR:  …`. */
const database = /\b(DEBUG[1-5]?|INFO|NOTICE|LOG|DETAIL|HINT|CONTEXT|STATEMENT|WARNING|ERROR|FATAL|PANIC):\s/
const glyph = /^[\s\d:.,TZ/+-]{0,40}(?:([❌✖✗✘⨯🚨🔥⛔])|([⚠])|([🐛🔍])|([ℹ✔✓✅▲➜🚀]))/u
const words =
  /\b(?:(errors?|err|fatal|panic(?:ked)?|exceptions?|critical|failed|failure|traceback|unhandled|segfault)|(warn|warnings?|deprecated)|(debug|trace|verbose)|(info|notice))\b/gi

/** The level of a line, by what it says. The first of these that says anything counts; nothing that is written to stderr is an error for that. */
export function levelOfLine(line: string): LogLevel {
  const head = line.length > lookedAt ? line.slice(0, lookedAt) : line
  const text = head.includes('\u001b') ? head.replace(escapes, '') : head
  return (
    tagged(text) ??
    named(ownConsole.exec(text)?.[1]) ??
    (text.trimStart().startsWith('{') ? inJson(text) : undefined) ??
    ofDatabase(database.exec(text)?.[1]) ??
    ofGlyph(text) ??
    byWords(text)
  )
}

const named = (name: string | undefined): LogLevel | undefined =>
  name === undefined
    ? undefined
    : Object.hasOwn(byName, name.toLowerCase())
      ? byName[name.toLowerCase()]
      : undefined

const tagged = (text: string): LogLevel | undefined =>
  text.includes('[') ? named(tag.exec(text)?.[1]) : undefined

function inJson(text: string): LogLevel | undefined {
  const [, name, number] = jsonKey.exec(text) ?? []
  if (number === undefined) return named(name)
  // As pino and bunyan count them; as syslog does below 10.
  const value = Number(number)
  if (value < 10) return value <= 3 ? 'error' : value === 4 ? 'warning' : value === 7 ? 'debug' : 'info'
  return value < 30 ? 'debug' : value < 40 ? 'info' : value < 50 ? 'warning' : 'error'
}

function ofDatabase(name: string | undefined): LogLevel | undefined {
  if (name === undefined) return undefined
  return name.startsWith('DEBUG') ? 'debug' : (named(name) ?? 'info')
}

function ofGlyph(text: string): LogLevel | undefined {
  const [, error, warning, debug, info] = glyph.exec(text) ?? []
  if (error !== undefined) return 'error'
  if (warning !== undefined) return 'warning'
  if (debug !== undefined) return 'debug'
  return info === undefined ? undefined : 'info'
}

/** A word of an error counts wherever it stands; then one of a warning, and so on. */
function byWords(text: string): LogLevel {
  let found: LogLevel | undefined
  // Most lines have none of them, and to ask for all matches copies the pattern first.
  words.lastIndex = 0
  for (let match = words.exec(text); match !== null; match = words.exec(text)) {
    const [, error, warning, debug] = match
    if (error !== undefined) return 'error'
    if (warning !== undefined) found = 'warning'
    else if (debug !== undefined && found !== 'warning') found = 'debug'
    else found ??= 'info'
  }
  return found ?? 'info'
}
