import fc from 'fast-check'
import { test } from 'tap'
import { frameText } from '../../../core/http/streams.js'
import { framesOf, type Given } from '../kept/line-frames.js'
import { LineTimes } from '../kept/line-time.js'
import { idOf } from '../kept/log-id.js'
import type { KeptChunk } from '../kept/log-store.js'
import { chunksOf } from './chunks-of.js'

const seed = 20_260_101
const begin = Date.parse('2026-01-02T03:04:05.000Z')

interface Line {
  readonly ms: number
  readonly nanos: number
  readonly message: string
}

function chunkOf(lines: readonly Line[], ordinal: number): KeptChunk {
  const [chunk] = chunksOf(
    lines.map(line => ({ ...line, kind: 2 })),
    text => text
  )
  if (chunk === undefined) throw new Error('no chunk')
  return { ...chunk, ordinal, container_id: 'a', deployment_id: null }
}

const textOf = (given: readonly Given[]): string => Buffer.concat(given.map(({ bytes }) => bytes)).toString()

/** As the platform writes frames that are given to it as such. */
const expected = (lines: readonly Line[], ordinal: number): string =>
  lines
    .map(({ message, ...time }, at) =>
      frameText({
        id: idOf({ ...time, ordinal: ordinal + at }),
        data: `${new LineTimes().write(time)} ${message}`
      })
    )
    .join('')

test('lines are written as frames with their ids and times, whatever they say, and from any of them on', t => {
  const line = fc.record({
    ms: fc.oneof(
      fc.integer({ min: begin, max: begin + 2500 }),
      fc.integer({ min: begin - 300_000, max: begin + 200_000 })
    ),
    nanos: fc.integer({ min: 0, max: 999_999 }),
    message: fc
      .array(fc.constantFrom('a', ' ', '\r', '\t', 'é', '\u{1f600}', '\u001b[31m', 'data: x'), {
        maxLength: 12
      })
      .map(parts => parts.join(''))
  })
  const ordinal = fc.oneof(
    fc.integer({ min: 0, max: 2 ** 25 }),
    fc.integer({ min: 2 ** 24 - 20, max: 2 ** 24 + 20 }),
    fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER - 100 })
  )
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 30 }), ordinal, fc.nat(), (lines, first, seen) => {
      const chunk = chunkOf(lines, first)
      const from = seen % lines.length
      const given = framesOf(chunk, first + from)
      t.equal(textOf(given), expected(lines.slice(from), first + from))
      t.equal(given.at(-1)?.end, first + lines.length)
    }) as never,
    { seed, numRuns: 300 }
  )
  t.end()
})

test('a reader is given some at a time, each with its end, and a line that is longer alone', t => {
  const lengths = [...Array<number>(300).fill(90), 60_000, 10, 400_000, 20, ...Array<number>(90).fill(5)]
  const lines = lengths.map((length, n) => ({ ms: begin + n, nanos: n, message: 'é'.repeat(length) }))
  const chunks = chunksOf(
    lines.map(line => ({ ...line, kind: 2 })),
    text => text
  )
  let ordinal = 7
  const given = chunks.flatMap(chunk => {
    const own = framesOf({ ...chunk, ordinal, container_id: 'a', deployment_id: null }, 0)
    ordinal += chunk.lines
    return own
  })
  t.equal(textOf(given), expected(lines, 7))
  t.ok(given.length > 5)
  let before = 7
  for (const { bytes, end } of given) {
    const text = Buffer.from(bytes).toString()
    t.equal(text.split('\n\n').length - 1, end - before, 'the end is behind the last of them')
    t.ok(end - before === 1 || bytes.length < 17 * 1024, `${bytes.length} bytes`)
    t.ok(text.endsWith('\n\n'))
    before = end
  }
  t.equal(before, ordinal)
  t.end()
})
