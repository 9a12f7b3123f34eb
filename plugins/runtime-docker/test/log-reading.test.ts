import fc from 'fast-check'
import { test } from 'tap'
import { ReadBytes } from '../answers/read-bytes.js'
import { FollowTrust, isLittle } from '../logs/follow-trust.js'
import type { LogMessage } from '../logs/log-message.js'
import { logMessages } from '../logs/log-messages.js'
import { LogPace } from '../logs/log-pace.js'
import { type LogPlace, placeBehind, placeText, readPlace } from '../logs/log-place.js'
import { logSplitter } from '../logs/log-splitter.js'
import { nextWindow, PlaceSearch, windowAfter } from '../logs/place-search.js'

const seed = 20_260_101
const begin = Date.parse('2026-01-02T03:04:05.000Z')
/** A time of so many nanoseconds more. */
const timeOf = (nanos: number): string =>
  `${new Date(begin + Math.floor(nanos / 1e6)).toISOString().slice(0, 20)}${String(nanos % 1e9).padStart(9, '0')}Z`

function frame(stream: number, text: string | Buffer): Buffer {
  const body = Buffer.from(text)
  const head = Buffer.alloc(8)
  head[0] = stream
  head.writeUInt32BE(body.length, 4)
  return Buffer.concat([head, body])
}

async function read(pieces: readonly Buffer[], hasTerminal = false): Promise<LogMessage[]> {
  const splitter = logSplitter(hasTerminal)
  let count = 0
  // As bytes come of an engine: all in the same place.
  const place = Buffer.alloc(pieces.reduce((longest, { length }) => Math.max(longest, length), 0))
  const more = async (): Promise<number> => {
    const length = pieces[count++]?.copy(place) ?? 0
    if (length > 0) splitter.take(new ReadBytes(place, length), 0, length)
    return length
  }
  const found: LogMessage[] = []
  for await (const messages of logMessages({ more }, splitter, 0)) found.push(...messages)
  return found
}

const time = timeOf(678_901_234)

test('messages are read however they are cut, with stream, time, text and whether the line ends', async t => {
  const whole = Buffer.concat([
    frame(1, `${time} one\n`),
    frame(2, `${time} \u{1f600} é\n`),
    frame(1, `${time} \n`),
    frame(1, `${time} `),
    frame(1, `${time} a part`),
    frame(1, `${time} 10%\r50%\r100%\r\n`),
    frame(1, `${time} a\u0000b\u0007\tc\u001b[31m\n`)
  ])
  const expected = [
    { stream: 'stdout', time, text: 'one' },
    { stream: 'stderr', time, text: '\u{1f600} é' },
    { stream: 'stdout', time, text: '' },
    { stream: 'stdout', time, text: '', continues: true },
    { stream: 'stdout', time, text: 'a part', continues: true },
    { stream: 'stdout', time, text: '100%' },
    { stream: 'stdout', time, text: 'ab\tc\u001b[31m' }
  ]
  for (const length of [1, 3, 7, 50, whole.length]) {
    const pieces = Array.from({ length: Math.ceil(whole.length / length) }, (_, n) =>
      whole.subarray(n * length, (n + 1) * length)
    )
    t.same(
      (await read(pieces)).map(({ bytes: _, ...message }) => message),
      expected,
      `in pieces of ${length}`
    )
  }
})

test('times of other engines become times of one form', async t => {
  const messages = await read([
    frame(1, '2026-01-02T04:04:05.5+01:00 a\n'),
    frame(1, '2026-01-02T03:04:05Z b\n'),
    frame(1, 'no time at all\n')
  ])
  t.same(
    messages.map(message => [message.time, message.text]),
    [
      ['2026-01-02T03:04:05.500000000Z', 'a'],
      ['2026-01-02T03:04:05.000000000Z', 'b'],
      ['1970-01-01T00:00:00.000000000Z', 'no time at all']
    ]
  )
})

test('what the engine says in the stream of a failure fails it in its words', async t => {
  await t.rejects(read([frame(1, `${time} one\n`), frame(3, 'Error grabbing logs: invalid character')]), {
    message: 'Error grabbing logs: invalid character'
  })
  const huge = frame(1, 'x')
  huge.writeUInt32BE(2 ** 31, 4)
  await t.rejects(read([huge]), { message: /2147483648 bytes/ })
})

test('output of a terminal is read by lines', async t => {
  const bytes = Buffer.from(`${time} one\r\n${time} two\r\n${time} end`)
  for (const length of [1, 7, 40, bytes.length]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, n) =>
      bytes.subarray(n * length, (n + 1) * length)
    )
    t.same(
      (await read(pieces, true)).map(({ text, continues = false }) => [text, continues]),
      [
        ['one', false],
        ['two', false],
        ['end', true]
      ],
      `in pieces of ${length}`
    )
  }
  const long = Buffer.from(`${time} ${'x'.repeat(100_000)}`)
  const found = await read([long.subarray(0, 60_000), long.subarray(60_000)], true)
  t.equal(found.length, 1, 'a line without an end is not waited for beyond 64 KiB')
  t.equal(found[0]?.continues, true)
})

const message = fc.record({
  stream: fc.constantFrom('stdout' as const, 'stderr' as const),
  // Many are of one time, and some come a little behind those of the other stream.
  step: fc.constantFrom(0, 0, 1, 2, 3e9),
  late: fc.integer({ min: 0, max: 3 })
})

test('behind any place the same messages are found, from whatever window it is looked for in', t => {
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 40 }), fc.nat(), fc.nat(), (steps, at, from) => {
      let now = 1000
      const messages = steps.map(({ stream, step }) => {
        now = Math.max(990, now + step)
        return { stream, time: timeOf(now) }
      })
      const index = at % messages.length
      let place: LogPlace | undefined
      for (const one of messages.slice(0, index + 1)) place = placeBehind(place, [one])
      t.same(placeBehind(undefined, messages.slice(0, index + 1)), place, 'one by one or together')
      if (place === undefined) throw new Error('no place')
      t.same(readPlace(placeText(place)), place)
      const whole = new PlaceSearch(place, true)
      t.same(
        messages.map(one => whole.look(one)),
        messages.map((_, n) => (n <= index ? 'known' : 'new'))
      )
      // A window may say that it does not reach so far, and is never wrong.
      const begins = from % messages.length
      const search = new PlaceSearch(place, false)
      for (const [n, one] of messages.entries()) {
        if (n < begins) continue
        const finding = search.look(one)
        if (finding === 'too-late') break
        t.equal(finding, n <= index ? 'known' : 'new')
      }
    }) as never,
    { seed, numRuns: 500 }
  )
  t.end()
})

test('where the engine has thrown away what was read last, all that it still has is new', t => {
  const place = placeBehind(undefined, [
    { stream: 'stdout', time: timeOf(1) },
    { stream: 'stderr', time: timeOf(5) }
  ])
  if (place === undefined) throw new Error('no place')
  const search = new PlaceSearch(place, true)
  t.equal(search.look({ stream: 'stdout', time: timeOf(6) }), 'first')
  t.equal(search.look({ stream: 'stdout', time: timeOf(7) }), 'new')
  t.equal(new PlaceSearch(place, false).look({ stream: 'stdout', time: timeOf(6) }), 'too-late')
  t.end()
})

test('what is no place is none', t => {
  for (const text of [
    '',
    'x',
    'stdout - - x',
    `stdout - - ${time}`,
    `stderr ${time}/1 - ${time}`,
    `stdout ${time}/x - ${time}`
  ])
    t.equal(readPlace(text), undefined, text)
  t.ok(readPlace(`stdout ${time}/1 - ${time}`))
  t.ok(
    placeText({ last: 'stdout', stdout: { time, count: 1e9 }, stderr: { time, count: 1e9 }, latest: time })
      .length <= 200
  )
  t.end()
})

test('a window that was too small grows as far as is needed, and to all in the end', t => {
  const nowMs = 100_000
  const next = (window: number, earliestMs: number, placeMs: number) =>
    nextWindow({ window, earliestMs }, { before: undefined, placeMs, nowMs })
  t.equal(next(16, nowMs - 100, nowMs - 100), 64)
  t.equal(next(16, nowMs - 10, nowMs - 980), 1840)
  t.equal(next(16, nowMs, 0), 'all')
  t.equal(next(60_000, nowMs - 10, nowMs - 11), 'all')
  t.end()
})

test('of a burst as many are asked for as its pace says, also when it has ended long ago', t => {
  const known = { before: undefined, placeMs: 9020, nowMs: 60_000 }
  const asked = { window: 1000, earliestMs: 10_000 }
  t.equal(nextWindow(asked, { ...known, aMs: 40 }), 47_150)
  t.equal(nextWindow(asked, { ...known, aMs: 1 }), 4000, 'and never only a few more')
  t.equal(nextWindow({ ...asked, window: 40_000 }, { ...known, aMs: 1 }), 60_000, 'nor many more at once')
  t.equal(nextWindow(asked, { ...known, aMs: 4000 }), 'all')
  const before = { window: 500, earliestMs: 10_010 }
  t.equal(nextWindow(asked, { ...known, before, aMs: 4000 }), 58_650, 'what two questions say counts more')
  t.equal(nextWindow(asked, { ...known, before: { ...before, earliestMs: 10_000 }, aMs: 40 }), 47_150)
  t.equal(windowAfter(80_000), 10_000)
  t.equal(windowAfter(0), 16)
  t.end()
})

test('the pace is that of the last second, and there is none of a few messages', t => {
  const pace = new LogPace()
  const many = (count: number, fromMs: number, everyMs: number) =>
    Array.from({ length: count }, (_, n) => ({ time: timeOf((fromMs + n * everyMs) * 1e6) }))
  pace.note([])
  pace.note(many(50, 0, 1))
  t.equal(pace.aMs, undefined)
  pace.note(many(451, 50, 1))
  t.equal(pace.aMs, 501 / 500)
  pace.note(many(200, 2000, 2))
  t.equal(pace.aMs, 200 / 398, 'what was before does not count')
  pace.note(many(200, 2500, 0))
  t.equal(pace.aMs, 400 / 500)
  t.end()
})

const of = (stream: LogMessage['stream'], nanos: number, bytes = 100): LogMessage => ({
  stream,
  time: timeOf(nanos),
  text: '',
  bytes
})

test('messages are believed while the times of each stream go on', t => {
  const trust = new FollowTrust(() => begin, true)
  t.equal(trust.believed([of('stdout', 1), of('stderr', 0), of('stdout', 2)]), 3)
  t.equal(trust.believed([of('stdout', 3), of('stdout', 3)]), 1, 'of the same time')
  t.equal(trust.believed([of('stderr', 0)]), 0, 'once more')
  t.end()
})

test('messages are not believed that come later than others did', t => {
  let now = begin
  const trust = new FollowTrust(() => now, true)
  t.equal(trust.believed([of('stdout', 0)]), 1)
  now += 5000
  t.equal(trust.believed([of('stdout', 4.9e9)]), 1, 'in time')
  now += 300
  t.equal(trust.believed([of('stdout', 4.91e9), of('stdout', 5.29e9)]), 0)
  t.end()
})

test('what an engine has kept for long comes late from the first one on', t => {
  const trust = new FollowTrust(() => begin + 60_000, true)
  t.equal(trust.believed([of('stdout', 0), of('stdout', 1)]), 2)
  t.end()
})

test('more than a MiB in a second is too much to be followed', t => {
  let now = begin
  const trust = new FollowTrust(() => now, true)
  t.equal(trust.believed([of('stdout', 1, 900_000)]), 1)
  t.notOk(trust.isTooMuch)
  t.equal(trust.believed([of('stdout', 2, 900_000)]), 1)
  t.ok(trust.isTooMuch)
  now += 1500
  t.ok(trust.isTooMuch, 'in the second that has ended')
  t.notOk(trust.isTooMuch)
  const ofNewer = new FollowTrust(() => now, false)
  t.equal(ofNewer.believed([of('stdout', 1, 1_800_000)]), 1)
  t.notOk(ofNewer.isTooMuch, 'a newer engine tells nothing twice')
  t.ok(isLittle(1000, 100_000))
  t.notOk(isLittle(10_000, 0))
  t.notOk(isLittle(1, 300_000))
  t.end()
})
