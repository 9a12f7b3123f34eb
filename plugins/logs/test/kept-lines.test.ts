import fc from 'fast-check'
import { test } from 'tap'
import {
  type KeptLine,
  kindOf,
  levelOf,
  linesOf,
  longestSpanMs,
  maskOf,
  mostBytes,
  mostLines,
  stepOf,
  streamOf
} from '../kept/chunk.js'
import { byPlace, HistoryOrder } from '../kept/history-order.js'
import { LineTimes } from '../kept/line-time.js'
import { idOf, placeOf } from '../kept/log-id.js'
import { chunksOf } from './chunks-of.js'

const seed = 20_260_101
const check = (property: fc.IRawProperty<never>): void => {
  fc.assert(property, { seed, numRuns: 200 })
}
const begin = Date.parse('2026-01-02T03:04:05.000Z')
const nanos = fc.integer({ min: 0, max: 999_999 })
const line: fc.Arbitrary<KeptLine> = fc.record({
  ms: fc.integer({ min: begin - 2_000_000, max: begin + 2_000_000 }),
  nanos,
  kind: fc.integer({ min: 0, max: 7 }),
  message: fc.string({ maxLength: 20 }).map(text => text.replaceAll('\n', ' '))
})
const asGiven = (text: string): string => text

test('lines come out of their chunks as they went in, to the nanosecond, and no chunk is beyond its limits', t => {
  check(
    fc.property(fc.array(line, { minLength: 1, maxLength: 50 }), lines => {
      const chunks = chunksOf(lines, asGiven)
      t.same(chunks.flatMap(linesOf), lines)
      for (const chunk of chunks) {
        t.ok(chunk.endsAt - chunk.beginsAt <= longestSpanMs)
        const own = linesOf(chunk)
        t.equal(chunk.lines, own.length)
        t.equal(chunk.beginsAt, Math.min(...own.map(({ ms }) => ms)))
        t.equal(chunk.endsAt, Math.max(...own.map(({ ms }) => ms)))
        t.equal(
          chunk.mask,
          own.reduce((mask, { kind }) => mask | (1 << kind), 0)
        )
      }
    }) as never
  )
  t.end()
})

test('many lines, and long ones, are several chunks', t => {
  const short = Array.from({ length: 2500 }, (_, n) => ({
    ms: begin + n,
    nanos: 0,
    kind: 0,
    message: String(n)
  }))
  t.same(
    chunksOf(short, asGiven).map(({ lines }) => lines),
    [...Array<number>(6).fill(mostLines), 100]
  )
  const long = Array.from({ length: 10 }, () => ({
    ms: begin,
    nanos: 0,
    kind: 0,
    message: 'x'.repeat(16_384)
  }))
  const chunks = chunksOf(long, asGiven)
  t.ok(chunks.every(({ bytes }) => bytes <= mostBytes))
  t.same(chunks.flatMap(linesOf), long)
  const one = chunksOf([{ ms: begin, nanos: 0, kind: 0, message: 'é'.repeat(mostBytes) }], asGiven)
  t.equal(one.length, 1, 'what alone is beyond the limit is a chunk all the same')
  t.end()
})

test('the step from one line to the next is its nanoseconds in base 36', t => {
  for (const nanos of [0, 1, 35, 36, 1295, 1296, 1297, 46_656, 999_999, 1_679_615, 1_679_616, -1, -999_999])
    t.equal(stepOf(0, nanos), nanos.toString(36))
  t.equal(stepOf(600_000, 5), (600_000 * 1e6 + 5).toString(36))
  t.equal(stepOf(-3, 5), (-3e6 + 5).toString(36))
  t.end()
})

test('empty lines take room as well', t => {
  const empty = Array.from({ length: 400 }, (_, n) => ({ ms: begin + n, nanos: 7, kind: 2, message: '' }))
  const [chunk] = chunksOf(empty, asGiven)
  const { times = '', kinds = '', text = '', bytes = 0 } = chunk ?? {}
  t.ok(bytes > Buffer.byteLength(times + kinds + text), `${bytes}`)
  t.ok(bytes > 400 * 4, `${bytes}`)
  t.end()
})

test('what is taken out of some lines leaves the others, and their number, as they are', t => {
  const lines = ['a secret', 'plain', 'secret\tsecret'].map(message => ({
    ms: begin,
    nanos: 0,
    kind: 0,
    message
  }))
  const chunks = chunksOf(lines, text => text.replaceAll('secret', 'x\ny'))
  t.same(
    chunks.flatMap(linesOf).map(({ message }) => message),
    ['a x y', 'plain', 'x y\tx y']
  )
  t.end()
})

test('each kind is a level and a stream, and a filter is the kinds that it lets through', t => {
  for (const level of ['debug', 'info', 'warning', 'error'] as const) {
    for (const stream of ['stdout', 'stderr'] as const) {
      const kind = kindOf(level, stream)
      t.equal(levelOf(kind), level)
      t.equal(streamOf(kind), stream)
      t.equal(maskOf(level, stream), 1 << kind)
    }
  }
  t.equal(maskOf(undefined, undefined), 0xff)
  t.equal(maskOf('error', undefined), 0b1100_0000)
  t.equal(maskOf(undefined, 'stderr'), 0b1010_1010)
  t.end()
})

test('the id of a line is a UUID that says its place, and nothing else is', t => {
  check(
    fc.property(
      fc.record({
        ms: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
        nanos,
        ordinal: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
      }),
      place => {
        const id = idOf(place)
        t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        t.same(placeOf(id), place)
      }
    ) as never
  )
  for (const text of [
    undefined,
    '',
    'x',
    '11111111-1111-4111-8111-111111111111',
    '11111111-1111-8111-0111-111111111111',
    '11111111-1111-8FFF-8111-111111111111',
    '11111111-1111-8fff-bfff-ffffffffffff'
  ])
    t.equal(placeOf(text), undefined, String(text))
  t.end()
})

test('times are read and written with all nine digits', t => {
  const times = new LineTimes()
  for (const text of [
    '2026-01-02T03:04:05.678901234Z',
    '2026-01-02T03:04:05.000000001Z',
    '2026-01-02T03:04:06.999999999Z',
    '1970-01-01T00:00:00.000000000Z'
  ]) {
    t.equal(times.write(times.read(text)), text)
    t.equal(new LineTimes().write(times.read(text)), text)
  }
  t.same(times.read('2026-01-02T03:04:05.678901234Z'), { ms: begin + 678, nanos: 901_234 })
  t.end()
})

test('lines of containers that write at once are put into one order, whatever chunks they come in', t => {
  const place = fc.record({ ms: fc.integer({ min: 0, max: 30 }), nanos: fc.integer({ min: 0, max: 2 }) })
  check(
    fc.property(fc.array(fc.array(place, { minLength: 1, maxLength: 6 }), { maxLength: 12 }), chunks => {
      let ordinal = 0
      const all = chunks.map(chunk => chunk.map(line => ({ ...line, ordinal: ordinal++ })))
      const latest = (chunk: ReadonlyArray<{ ms: number }>): number => Math.max(...chunk.map(({ ms }) => ms))
      const inOrder = [...all].sort((a, b) => latest(b) - latest(a))
      const order = new HistoryOrder()
      const given = inOrder.flatMap((chunk, index) => {
        const next = inOrder[index + 1]
        return order.add(chunk, next === undefined ? Number.NEGATIVE_INFINITY : latest(next))
      })
      t.same([...given, ...order.rest()], all.flat().sort(byPlace))
    }) as never
  )
  t.end()
})
