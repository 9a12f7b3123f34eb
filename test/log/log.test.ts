import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
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

test('a line reads the same whatever makes it: an ordinary logger, or one with settings of its own', async t => {
  const { lines, log } = capture('json')
  const members = {
    text: 'a "quoted" \u001b\n\ud800 é',
    '__proto__ "x"': 1,
    number: Number.NaN,
    none: null,
    missing: undefined,
    list: [1, { deep: true }],
    at: new Date(0),
    err: new Error('failed')
  }
  const withoutTime = (line: string | undefined) => line?.replace(/"time":"[^"]*Z"/, '"time":0')
  for (const [given, message] of [
    [members, 'says "this" %s'],
    [{}, '']
  ] as const) {
    const from = lines.length
    log.child({ plugin: 'x' }).warn(given, message)
    // A serializer of its own is pino's work.
    log.child({ plugin: 'x' }, { serializers: { unused: () => 1 } }).warn(given, message)
    t.equal(withoutTime(lines[from]), withoutTime(lines[from + 1]))
    t.match(parsed(lines[from]), { level: 'warn', plugin: 'x', msg: message })
  }
  t.match(parsed(lines[0]).time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

  log.child({ plugin: 'x' }, { msgPrefix: 'before: ' }).info({ a: 1 }, 'it')
  t.match(parsed(lines.at(-1)), { msg: 'before: it', a: 1 })
  log.child({}, { serializers: { a: () => 'shown' } }).info({ a: 1 }, 'it')
  t.match(parsed(lines.at(-1)), { a: 'shown' })
  log.child({}, { redact: ['a'] }).info({ a: 'hidden' }, 'it')
  t.notMatch(lines.at(-1), 'hidden')
  log.child({}, { formatters: { log: () => ({ b: 2 }) } }).info({ a: 1 }, 'it')
  t.match(parsed(lines.at(-1)), { b: 2, a: undefined })
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

const parsed = (line: string | undefined): any => JSON.parse(line ?? '')

test('an error is told by its type, message, stack, code and causes; what else it carries is an excerpt', async t => {
  const { lines, log } = capture('json')
  const carried = {
    code: 'E_X',
    status: 502,
    response: { data: Buffer.alloc(5_000_000), headers: { a: { b: { c: 'deep' } } } },
    text: 'x'.repeat(1_000_000),
    rows: Array.from({ length: 50_000 }, (_, at) => ({ at }))
  }
  log.error({ err: Object.assign(new Error('top', { cause: new Error('below') }), carried) }, 'failed')
  const { err } = parsed(lines[0])
  t.match(err, { type: 'Error', message: 'top: below', code: 'E_X', status: 502 })
  t.match(err.stack, /Error: top\n.*caused by: Error: below/s)
  t.equal(err.response.data, '5000000 bytes')
  t.ok(lines[0]!.length < 16_384, `${lines[0]!.length} characters`)
  t.notMatch(lines[0], 'deep')

  log.error(new AggregateError(Array.from({ length: 1_000 }, (_, at) => new Error(`one ${at}`))), 'many')
  const { err: many } = parsed(lines[1])
  t.match(many.aggregateErrors[0], { type: 'Error', message: 'one 0' })
  t.ok(lines[1]!.length < 65_536, `${lines[1]!.length} characters`)

  const endless = new Error('endless')
  endless.cause = endless
  log.error({ err: endless })
  t.match(parsed(lines[2]), { err: { message: 'endless' } })
  log.error(new Error('y'.repeat(1_000_000)))
  t.ok(lines[3]!.length < 65_536, `${lines[3]!.length} characters`)
  t.match(
    parsed(lines[3]),
    { msg: /^y+/ },
    'the message of an error that is logged alone is that of the line'
  )
  const unreadable = Object.defineProperty(new Error('m'), 'more', {
    enumerable: true,
    get() {
      throw new Error('no')
    }
  })
  log.error({ err: unreadable, other: unreadable }, 'still told')
  t.match(parsed(lines[4]), { msg: 'still told', err: { message: 'm' } })
})

test('an error gives its message to a line that has none', async t => {
  const { lines, log } = capture('json')
  log.error(new Error('alone'))
  log.error(new Error('told otherwise'), 'failed')
  log.error({ err: new Error('among fields'), plugin: 'shop' })
  log.error({ err: new Error('told otherwise') }, 'failed')
  t.same(
    lines.map(line => parsed(line).msg),
    ['alone', 'failed', 'among fields', 'failed']
  )
})

test('no line is longer than 64 KiB, whatever is logged', async t => {
  const { lines, log } = capture('json')
  const rows = Array.from({ length: 10_000 }, (_, at) => ({ at, text: '\u0001'.repeat(100) }))
  const circular: Record<string, unknown> = { big: 10n, at: new Date(0) }
  circular.self = circular
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) as object
  log.info({ rows }, 'rows')
  log.info('%o', rows)
  log.info('z'.repeat(1_000_000))
  log.info({ text: '\u0001'.repeat(100_000), more: '\u0001'.repeat(100_000) }, '\u0001'.repeat(100_000))
  log.info(circular, 'circular')
  log.info(deep, 'deep')
  log.child({ plugin: 'p', rows }).info('child')
  log.info(Object.fromEntries(rows.map(({ at, text }) => [`${at}${text}`, text])), 'keys')
  t.equal(lines.length, 8)
  for (const line of lines) {
    t.ok(line.length <= 65_536, `${line.length} characters`)
    t.match(parsed(line), { level: 'info', time: /^\d{4}-/, msg: String })
  }
  t.match(parsed(lines[0]).rows[1], { at: 1 })
  t.match(parsed(lines[4]), { big: '10', at: '1970-01-01T00:00:00.000Z' })
  t.equal(parsed(lines[6]).plugin, 'p')
})

test('a password in an address that is cut off before its end does not show', async t => {
  const { lines, log } = capture('json')
  const password = 'p'.repeat(600)
  for (let before = 7_400; before < 8_300; before += 7)
    log.info(`${'x'.repeat(before)} https://user:${password}@example.com/${'y'.repeat(2_000)}`)
  t.notMatch(lines.join(''), /pppp/)
})

test('a secret where a text is cut leaves no part of itself behind', async t => {
  const { lines, log, redactor } = capture('json')
  redactor.scope().redact(['a-secret-of-some-length'])
  redactor.add(['b'.repeat(300)])
  for (let before = 8_100; before < 8_260; before++)
    log.info({ text: `${'x'.repeat(before)}a-secret-of-some-length${'y'.repeat(9_000)}` }, 'cut')
  log.info({ text: `${'x'.repeat(8_100)}${'b'.repeat(300)}${'y'.repeat(9_000)}` }, 'cut')
  t.notMatch(lines.join(''), /xa-|bb/)
})

/** Every kind of value that a plugin in JavaScript may hand over. */
const odd = (): unknown[] => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  const throwing = {
    get a(): never {
      throw new Error('not for you')
    },
    toString(): never {
      throw new Error('nor as a text')
    }
  }
  return [
    Symbol('s'),
    () => 1,
    class {},
    1n,
    undefined,
    null,
    Number.NaN,
    true,
    [Symbol('s')],
    new Map([[1, 2]]),
    new Date(Number.NaN),
    Object.create(null),
    new Uint8Array(3),
    Object('boxed'),
    Object.assign(new Error('x'), { message: undefined }),
    Object.assign(new Error('x'), { message: Symbol('s') }),
    cyclic,
    throwing,
    proxy
  ]
}

test('whatever a plugin logs, nothing is thrown at it, and what is written is a line', async t => {
  type Any = Record<'info' | 'child', (...args: unknown[]) => { info(text: string): void }>
  for (const format of ['json', 'console'] as const) {
    const { lines, log } = capture(format)
    const any = log as unknown as Any
    let written = 0
    const writes = (what: string, call: () => unknown): void => {
      t.doesNotThrow(call, what)
      t.equal(lines.length, ++written, what)
      if (format === 'json') t.type(parsed(lines.at(-1)).level, 'string', what)
    }
    odd().forEach((value, at) => {
      const what = `${format} ${at}`
      writes(what, () => any.info(value))
      writes(`${what} as the message`, () => any.info({}, value))
      writes(`${what} twice`, () => any.info(value, value))
      writes(`${what} as a member`, () => any.info({ value }, 'said'))
      writes(`${what} in a format`, () => any.info('%s %d %j %o', value, value, value, value))
      writes(`${what} as bindings`, () => any.child(value).info('said'))
      writes(`${what} in bindings`, () => any.child({ value }).info('said'))
    })
  }
  const { lines, log } = capture('json')
  log.info(Symbol('s') as never)
  log.info(Object('boxed'))
  log.info(new Uint8Array(3))
  t.match(lines.map(parsed), [{ msg: 'Symbol(s)' }, { value: 'boxed' }, { value: '3 bytes' }])
})

test('of a long text a line encodes and decodes what it has room for, wherever it stands', t => {
  const long = 'x'.repeat(2_000_000)
  const { parse, stringify } = JSON
  let passed = 0
  const counted = (text: unknown): number => (typeof text === 'string' ? text.length : 0)
  JSON.stringify = ((...args: Parameters<typeof stringify>) => {
    const text = stringify(...args)
    passed += counted(text)
    return text
  }) as typeof stringify
  JSON.parse = (text, reviver) => {
    passed += counted(text)
    return parse(text, reviver)
  }
  t.teardown(() => Object.assign(JSON, { parse, stringify }))
  let stacks = 0
  const failed = (message: string): Error =>
    Object.defineProperty(new Error(message), 'stack', {
      get: () => {
        stacks++
        return `Error: ${message}`
      }
    })
  for (const format of ['json', 'console'] as const) {
    const { lines, log, redactor } = capture(format)
    redactor.add(['secret-1234'])
    const calls: Readonly<Record<string, () => void>> = {
      message: () => log.info(long),
      member: () => log.info({ long }, 'said'),
      'a list': () => log.info({ list: [long, long] }, 'said'),
      key: () => log.info({ [long]: 1 }, 'said'),
      error: () => log.error({ err: failed(long) }, 'said'),
      cause: () => log.error({ err: new Error('a', { cause: failed(long) }) }, 'said'),
      format: () => log.info('%s and %s', long, long),
      bindings: () => log.child({ long }).info('said'),
      boxed: () => log.info({ long: Object(long) }, 'said')
    }
    for (const [what, call] of Object.entries(calls)) {
      passed = 0
      call()
      t.ok(passed < 200_000, `${format}: ${passed} characters of ${what}`)
    }
    t.equal(lines.length, Object.keys(calls).length)
  }
  t.equal(stacks, 0, 'of an error whose message fills its stack, that is not made')
  t.end()
})

test('the last lines before a process ends are written, whatever ends it', async t => {
  for (const [what, end] of [
    ['nothing is left to do', ''],
    ['it is told to exit', 'process.exit(0)']
  ] as const) {
    const source = `
      import { createLog } from ${JSON.stringify(new URL('../../core/log/log.ts', import.meta.url).href)}
      import { createRedactor } from ${JSON.stringify(new URL('../../core/log/redactor.ts', import.meta.url).href)}
      const log = createLog({ level: 'info', format: 'json', redactor: createRedactor() })
      log.info('the last line')
      ${end}`
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import=tsx', '--conditions=busbar-source', '--input-type=module', '--eval', source],
      { timeout: 60_000 }
    )
    t.match(stdout, /"msg":"the last line"/, what)
  }
})
