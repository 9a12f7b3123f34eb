import { test } from 'tap'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'

function capture(format: 'json' | 'console', isColored = false) {
  const lines: string[] = []
  const redactor = createRedactor()
  const log = createLog({
    level: 'debug',
    format,
    redactor,
    isColored,
    destination: { write: line => lines.push(line) }
  })
  return { lines, log, redactor }
}

test('a JSON line has a time, a level by name and the message', async t => {
  const { lines, log } = capture('json')
  log.child({ plugin: 'projects' }).info({ count: 2 }, 'listed')
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 'info',
    plugin: 'projects',
    count: 2,
    msg: 'listed',
    time: /^\d{4}-/
  })
})

test('a line below the level is not written', async t => {
  const { lines, log } = capture('json')
  log.trace('unseen')
  t.same(lines, [])
})

test('a secret is taken out of messages, fields, errors and stacks, and the line stays JSON', async t => {
  const { lines, log, redactor } = capture('json')
  redactor.add(['s3cr"et\nvalue', 'error'])
  log.error({ err: new Error('bad s3cr"et\nvalue'), nested: [{ a: 's3cr"et\nvalue' }] }, 'has s3cr"et\nvalue')
  t.notMatch(lines.join(), /s3cr/)
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 'error',
    msg: 'has [REDACTED]',
    err: { message: 'bad [REDACTED]' },
    nested: [{ a: '[REDACTED]' }]
  })
})

test('the console format is one line of plain text', async t => {
  const { lines, log } = capture('console')
  log.info({ plugin: 'projects', ms: 3, path: '/a b' }, 'request done')
  t.match(lines[0], /^\d\d:\d\d:\d\d\.\d{3} INFO {2}\[projects\] request done ms=3 path="\/a b"\n$/)
})

test('the console format shows an error below its line, and the secret in it as hidden', async t => {
  const { lines, log, redactor } = capture('console')
  redactor.add(['hunter22'])
  log.error(new Error('no hunter22'), 'failed')
  t.match(lines[0], /ERROR failed\n {4}Error: no \[REDACTED\]\n {4}at /)
  log.warn({ error: 'plain text' }, 'odd')
  t.match(lines[1], /WARN {2}odd\n {4}"plain text"\n$/)
})

test('what comes from outside can neither start a line nor drive the terminal', async t => {
  const { lines, log } = capture('console')
  log.info({ agent: 'x\n00:00:00 INFO  forged' }, 'a\u001b[2Jb\nc')
  t.equal(lines[0]?.split('\n').length, 2)
  t.notMatch(lines[0], '\u001b')
})

test('colours appear on demand only', async t => {
  const { lines, log } = capture('console', true)
  log.warn('careful')
  t.match(lines[0], '\u001b[33mWARN')
})
