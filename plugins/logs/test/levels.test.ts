import { test } from 'tap'
import { levelOfLine } from '../collect/level.js'

const cases: ReadonlyArray<readonly [line: string, level: string]> = [
  // A tag at the beginning.
  ['[ERROR] it broke', 'error'],
  ['[warn] careful', 'warning'],
  ['2026-01-02T03:04:05Z [DEBUG] an error that is none', 'debug'],
  ['[Nest] 7 - LOG started', 'info'],
  ['[something] an error', 'error'],
  // As the platform's own log for people.
  ['12:34:56.789 WARN  [mail] could not be sent', 'warning'],
  ['12:34:56.789 INFO  listening', 'info'],
  ['\u001b[90m12:34:56.789\u001b[39m \u001b[31mERROR\u001b[39m it broke', 'error'],
  // JSON.
  ['{"level":"error","msg":"x"}', 'error'],
  ['{"level":50,"time":1,"msg":"x"}', 'error'],
  ['{"level":40,"msg":"error"}', 'warning'],
  ['{"level":30,"msg":"an error"}', 'info'],
  ['{"level":20}', 'debug'],
  ['{"severity":"WARNING"}', 'warning'],
  ['{"severity":3}', 'error'],
  ['{"severity":4}', 'warning'],
  ['{"severity":7}', 'debug'],
  ['{"lvl":"dbug","a":"error"}', 'debug'],
  ['{"levelname": "CRITICAL"}', 'error'],
  ['  {"msg":"exception","level":"info"}', 'info'],
  ['{"level":"constructor"}', 'info'],
  ['{"msg":"error"}', 'error'],
  // Databases.
  ['2026-01-02 03:04:05.678 UTC [7] LOG:  an error is logged', 'info'],
  ['2026-01-02 03:04:05.678 UTC [7] ERROR:  relation "x" does not exist', 'error'],
  ['2026-01-02 03:04:05.678 UTC [7] FATAL:  no', 'error'],
  ['2026-01-02 03:04:05.678 UTC [7] WARNING:  hm', 'warning'],
  ['2026-01-02 03:04:05.678 UTC [7] DEBUG2:  x', 'debug'],
  ['2026-01-02 03:04:05.678 UTC [7] STATEMENT:  select error', 'info'],
  // Glyphs.
  ['✖ no', 'error'],
  ['❌ no', 'error'],
  ['⚠ hm', 'warning'],
  ['⚠️ hm', 'warning'],
  ['✓ an error was mended', 'info'],
  ['🐛 found', 'debug'],
  // Words.
  ['an Error happened', 'error'],
  ['Traceback (most recent call last):', 'error'],
  ['panic: runtime error', 'error'],
  ['npm WARN deprecated x', 'warning'],
  ['debug: and then a warning', 'warning'],
  ['warning: and then an error', 'error'],
  ['info and debug', 'debug'],
  ['terrorism and mirrors', 'info'],
  ['listening on 3000', 'info'],
  ['', 'info'],
  [`${'x'.repeat(2000)} error`, 'info']
]

test('the level of a line is what it says of itself, in the order of the contract', t => {
  for (const [line, level] of cases) t.equal(levelOfLine(line), level, line.slice(0, 80))
  t.end()
})
