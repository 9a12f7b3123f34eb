import { randomBytes } from 'node:crypto'
import { cutMark } from 'busbar/sdk'
import { test } from 'tap'
import { createRedactor } from '../../core/log/redactor.js'

const secret = 'correct horse/battery+staple'

test('a text without secrets comes back as it is', async t => {
  const redactor = createRedactor()
  t.equal(redactor.clean('nothing to hide'), 'nothing to hide')
  redactor.add([secret])
  t.equal(redactor.clean('nothing to hide'), 'nothing to hide')
})

test('a live secret is replaced wherever it stands, in every spelling', async t => {
  const redactor = createRedactor()
  redactor.add([secret])
  const spellings = [
    secret,
    encodeURIComponent(secret),
    encodeURIComponent(secret).toLowerCase(),
    new URLSearchParams({ a: secret }).toString().slice(2),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64url')
  ]
  for (const spelling of spellings) t.equal(redactor.clean(`a ${spelling} b`), 'a [REDACTED] b', spelling)
})

test('a secret is found in whatever an encoder of addresses and forms makes of it', async t => {
  const redactor = createRedactor()
  const odd = "it's (50%) ~ so/much*fun+more!"
  redactor.add([odd])
  const plain = encodeURIComponent(odd)
  // RFC 3986, which encodes more than JavaScript does, and the rules of forms, which encode other ones.
  const strict = plain.replace(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = new URLSearchParams({ a: odd }).toString().slice(2)
  const spellings = [plain, strict, form].flatMap(text => [text, text.replaceAll('%20', '+')])
  for (const spelling of spellings) {
    const lower = spelling.replace(/%../g, hex => hex.toLowerCase())
    for (const text of [spelling, lower]) t.equal(redactor.clean(`a=${text}&b`), 'a=[REDACTED]&b', text)
  }
})

test('a secret inside a longer text that was encoded is found at every offset', async t => {
  const redactor = createRedactor()
  redactor.add([secret])
  for (const user of ['', 'u', 'us', 'use', 'user']) {
    for (const encoding of ['base64', 'base64url'] as const) {
      const encoded = Buffer.from(`${user}${secret}tail`).toString(encoding)
      const cleaned = redactor.clean(encoded)
      t.match(cleaned, '[REDACTED]')
      t.notMatch(Buffer.from(cleaned.replace('[REDACTED]', ''), encoding).toString(), /horse|battery|staple/)
    }
  }
})

test('the lines of a key file are hidden one by one', async t => {
  const redactor = createRedactor()
  redactor.add(['-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n'])
  t.equal(redactor.clean('line: hkiG9w0BAQEFAASC'), 'line: [REDACTED]')
  t.equal(redactor.clean('-----BEGIN KEY-----'), '-----BEGIN KEY-----')
})

test('values under four characters and plain words are left alone', async t => {
  const redactor = createRedactor()
  redactor.add(['abc', 'true', 'null', ''])
  t.equal(redactor.clean('abc true null'), 'abc true null')
})

test('overlapping secrets leave no part of either', async t => {
  const redactor = createRedactor()
  redactor.add(['abcdef', 'defghi', 'abcd'])
  t.equal(redactor.clean('-abcdefghi-'), '-[REDACTED]-')
  t.equal(redactor.clean('-abcd-'), '-[REDACTED]-')
})

test('a long secret is hidden as one, and what a line shows of it too', async t => {
  const redactor = createRedactor()
  const long = Array.from({ length: 500 }, (_, n) => (n * 7919).toString(36)).join('')
  redactor.add([long, `${long.slice(0, 40)}x`, long.slice(0, 8)])
  t.equal(redactor.clean(`a ${long} b`), 'a [REDACTED] b')
  t.equal(
    redactor.clean(`a ${long.slice(0, 40)}x b`),
    'a [REDACTED] b',
    'the longest of those that begin alike'
  )
  t.equal(redactor.clean(`a ${long.slice(0, 39)}`), `a [REDACTED]${long.slice(8, 39)}`)
  t.match(redactor.clean(`a ${long.slice(0, 300)}`), /^a \[REDACTED\].{0,63}$/, 'but for the rest of a piece')
})

test('a long secret is found wherever it stands, until it is removed', async t => {
  const redactor = createRedactor()
  const long = Array.from({ length: 50 }, (_, n) => (n * 7919).toString(36)).join('')
  const other = redactor.add([`${long.slice(0, 70)}${'y'.repeat(60)}`])
  const takeBack = redactor.add([long])
  other()
  const places = Array.from({ length: 20 }, (_, at) => 'x'.repeat(at))
  for (const before of places) {
    t.equal(redactor.clean(`${before}${long}`), `${before}[REDACTED]`)
    t.equal(redactor.clean(`${before}${long}z`), `${before}[REDACTED]z`)
  }
  takeBack()
  for (const before of places) t.equal(redactor.clean(`${before}${long}`), `${before}${long}`)
})

test('a value added twice stays hidden until both have let go', async t => {
  const redactor = createRedactor()
  const first = redactor.add(['hunter22'])
  const second = redactor.add(['hunter22'])
  first()
  first()
  t.equal(redactor.clean('hunter22'), '[REDACTED]')
  second()
  t.equal(redactor.clean('hunter22'), 'hunter22')
})

test('what one scope hides is left in the texts of another, and in no line of the log', async t => {
  const redactor = createRedactor()
  const mine = redactor.scope()
  const other = redactor.scope()
  const shared = redactor.add(['of-the-installation'])
  mine.redact(['success', 'k'.repeat(200)])
  mine.redact(['running'])
  other.redact(['hunter22'])
  const text = `success running hunter22 of-the-installation ${'k'.repeat(200)}`
  t.equal(mine.clean(text), '[REDACTED] [REDACTED] hunter22 [REDACTED] [REDACTED]')
  t.equal(other.clean(text), `success running [REDACTED] [REDACTED] ${'k'.repeat(200)}`)
  t.equal(redactor.clean(text), text.replace('of-the-installation', '[REDACTED]'))
  const line = (value: string): string => JSON.stringify({ level: 'info', msg: value })
  t.equal(redactor.cleanJson(line(text)), line(redactor.clean(text)))
  t.equal(
    redactor.cleanLogLine(line(text), ['level']),
    line('[REDACTED] [REDACTED] [REDACTED] [REDACTED] [REDACTED]')
  )
  mine.release()
  t.equal(mine.clean('success running'), 'success running')
  t.equal(
    redactor.cleanLogLine(line(text)),
    line(text.replace('hunter22 of-the-installation', '[REDACTED] [REDACTED]'))
  )
  shared()
  other.release()
  t.equal(redactor.cleanLogLine(line(text)), line(text))
})

test('known credentials are masked though nobody declared them', async t => {
  const redactor = createRedactor()
  const cases = [
    ['token busbar_pat_AbC-12_3.', 'token busbar_pat_[REDACTED].'],
    ['busbar_ses_xyz busbar_ref_xyz', 'busbar_ses_[REDACTED] busbar_ref_[REDACTED]'],
    ['POST /api/webhooks/deploy/busbar_hook_xyz', 'POST /api/webhooks/deploy/busbar_hook_[REDACTED]'],
    ['known_device=busbar_dev_b1.k.n-o.c_t; path=/', 'known_device=busbar_dev_[REDACTED]; path=/'],
    ['Authorization: Bearer eyJ.abc-_~+/=', 'Authorization: Bearer [REDACTED]'],
    ['clone https://user:p@ss@host/x', 'clone https://[REDACTED]@host/x'],
    ['https://ghp_0123456789abcdef@github.com', 'https://[REDACTED]@github.com'],
    ['ssh://git@github.com/a:b@c', 'ssh://git@github.com/a:b@c'],
    ['http://[::1]:8080/a@b', 'http://[::1]:8080/a@b']
  ] as const
  for (const [text, expected] of cases) t.equal(redactor.clean(text), expected)
})

test('a hostile text takes no time to search', async t => {
  const redactor = createRedactor()
  const startedAt = performance.now()
  for (const part of ['://:', 'bearer ', '://a:', 'busbar_pat_', ' '.repeat(8), '://aaaaaaaaaaaaaaaaaaaaa']) {
    redactor.clean(part.repeat(20_000))
  }
  t.ok(performance.now() - startedAt < 2000)
})

test('JSON stays valid: numbers are left alone, escaped strings are searched', async t => {
  const redactor = createRedactor()
  redactor.add(['12345678', 'say "hi"\n', 'info'])
  t.equal(redactor.cleanJson('{"n":12345678,"s":"12345678"}'), '{"n":12345678,"s":"[REDACTED]"}')
  t.equal(redactor.cleanJson(JSON.stringify({ msg: 'now say "hi"\n!' })), '{"msg":"now [REDACTED]!"}')
  t.equal(
    redactor.cleanJson(JSON.stringify({ msg: JSON.stringify({ a: 'say "hi"\n' }) })),
    JSON.stringify({ msg: '{"a":"[REDACTED]"}' })
  )
  t.equal(
    redactor.cleanJson('{"level":"info","key info":[{"a":"info"}]}', ['level']),
    '{"level":"info","key [REDACTED]":[{"a":"[REDACTED]"}]}'
  )
})

test('thousands of secrets cost a line little more than one', async t => {
  const line = `${'the quick brown fox jumps over the lazy dog '.repeat(5)}\n`
  const time = (count: number) => {
    const redactor = createRedactor()
    redactor.add(Array.from({ length: count }, (_, n) => `secret-value-${n}-${n * 7919}`))
    redactor.clean(line)
    const startedAt = performance.now()
    for (let n = 0; n < 5000; n++) redactor.clean(line)
    return (performance.now() - startedAt) / 5
  }
  t.comment(`µs a line: none ${time(0).toFixed(2)}, one ${time(1).toFixed(2)}, 2000 ${time(2000).toFixed(2)}`)
  t.ok(time(2000) < 100)
})

test('a large value is found without the blanks around it, and line by line', async t => {
  const redactor = createRedactor()
  const lines = Array.from({ length: 3000 }, () => randomBytes(48).toString('base64'))
  const token = randomBytes(150_000).toString('base64')
  redactor.add([`-----BEGIN-----\n${lines.join('\r\n')}\n`, `  ${token}\n`])
  for (const line of [lines[0], lines[1500], lines[2999], token])
    t.equal(redactor.clean(`a ${line} b`), 'a [REDACTED] b')
})

test('megabytes of secrets are hidden, and neither they nor what is hidden beside them make anybody wait', async t => {
  const redactor = createRedactor()
  const texts = () => Array.from({ length: 120 }, () => randomBytes(48_000).toString('base64'))
  const large = texts()
  const lines = texts().map(text => text.replace(/.{15}/g, '$&\n'))
  let longest = 0
  const timed = <T>(work: () => T): T => {
    const startedAt = performance.now()
    const result = work()
    longest = Math.max(longest, performance.now() - startedAt)
    return result
  }
  for (const values of [large, lines]) {
    const release = timed(() => redactor.add([...values, 'hunter2-of-the-same']))
    timed(() => redactor.clean('a line of somebody else'))
    for (let others = 0; others < 3; others++) {
      const other = timed(() => redactor.add([`hunter2-of-another-${others}`]))
      t.equal(
        timed(() => redactor.clean(`x hunter2-of-another-${others} x`)),
        'x [REDACTED] x'
      )
      timed(other)
    }
    for (const value of values.slice(0, 3))
      t.equal(
        timed(() => redactor.clean(`the value ${value} in a line`)),
        'the value [REDACTED] in a line'
      )
    const encoded = Buffer.from('hunter2-of-the-same').toString('base64')
    t.equal(redactor.clean(encoded), '[REDACTED]', 'a short one in every spelling')
    timed(release)
    t.equal(redactor.clean(encoded), encoded, 'nothing is left')
  }
  t.comment(`the longest took ${longest.toFixed(0)} ms`)
  t.ok(longest < 3000)
})

test('what may be half a secret goes where a text was cut, of each line, and once only', async t => {
  const redactor = createRedactor()
  const scope = redactor.scope()
  const long = randomBytes(1000).toString('hex')
  const short = randomBytes(20).toString('hex')
  scope.redact([short, long, short.slice(8, 12)])
  for (const [value, from] of [
    [short, 1],
    [short, 39],
    [long, 63],
    [long, 1999]
  ] as const) {
    const cut = `${'x'.repeat(100)} ${value.slice(0, from)}${cutMark}`
    const clean = scope.clean(`${cut}\n${cut}${value.slice(from)} and more\nlast ${'y'.repeat(100)}`)
    const [first, second, last] = clean.split('\n')
    t.match(first, /^x{37,101} ?\[REDACTED\] … \(cut\)$/)
    t.match(second, /^x{37,101} ?\[REDACTED\] … \(cut\)\[REDACTED\](?: and more)?$/)
    t.equal(last, `last ${'y'.repeat(100)}`)
    t.equal(scope.clean(clean), clean)
  }
  t.equal(scope.clean(`see https://me:${'p'.repeat(100)}${cutMark}`), `see https[REDACTED]${cutMark}`)
})
