import { Readable } from 'node:stream'
import { cutMark } from 'busbar/sdk'
import fc from 'fast-check'
import { test } from 'tap'
import { lineSplitter } from '../../core/exec/line-splitter.js'
import { jsonLines, OutputLines } from '../../plugins/runtime-docker/output-lines.js'

const seed = 20_260_101
const check = (property: fc.IRawProperty<never>): void => {
  fc.assert(property, { seed, numRuns: 300 })
}

/** Text of few kinds of characters, so that line ends, carriage returns and halves of characters meet. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom('\n', '\r', '\r\n', 'a', 'b', ' ', '\u{1f600}', 'é', '\0'),
      fc.string({ maxLength: 5 })
    )
  )
  .map(parts => parts.join(''))
const cuts = fc.array(fc.nat({ max: 40 }), { maxLength: 20 })

function pieces<T extends string | Buffer>(whole: T, at: readonly number[]): T[] {
  const marks = [...new Set([0, ...at.map(mark => Math.min(mark, whole.length)), whole.length])].sort(
    (a, b) => a - b
  )
  return marks.slice(1).map((end, index) => whole.slice(marks[index], end) as T)
}

/** A line as it stands in the end, when each carriage return begins it anew. */
const shown = (line: string): string => line.replace(/\r$/, '').split('\r').at(-1) ?? ''

test('the lines of a program are the same however its output is cut', async t => {
  check(
    fc.property(text, cuts, (whole, at) => {
      const lines: string[] = []
      const splitter = lineSplitter(line => {
        lines.push(line)
      })
      for (const piece of pieces(Buffer.from(whole), at)) splitter.push(piece)
      splitter.end()
      const plain = Buffer.from(whole).toString()
      const expected = plain.split('\n')
      if (expected.at(-1) === '') expected.pop()
      t.same(lines, expected.map(shown))
    }) as never
  )
})

test('what ends in the middle of a character keeps all that came before, and shows that something is missing', async t => {
  const lines: string[] = []
  const splitter = lineSplitter(line => {
    lines.push(line)
  })
  for (const byte of Buffer.from('é\n\u{1f600} b\u{1f600}').subarray(0, -1))
    splitter.push(Buffer.from([byte]))
  splitter.end()
  t.same(lines, ['é', '\u{1f600} b\ufffd'])
})

test('no line of a program is longer than 16 KiB, and what is cut off begins no other', async t => {
  check(
    fc.property(fc.nat({ max: 60_000 }), fc.nat({ max: 9 }), (length, first) => {
      const lines: string[] = []
      const splitter = lineSplitter(line => {
        lines.push(line)
      })
      const whole = `${'x'.repeat(first)}${'\u{1f600}'.repeat(length / 2)}\nnext\n`
      for (const piece of pieces(Buffer.from(whole), [first + 1, length])) splitter.push(piece)
      splitter.end()
      const [line = ''] = whole.split('\n')
      const isCut = line.length > 16 * 1024
      const [shown = '', ...others] = lines
      t.same(others, ['next'])
      t.equal(shown.endsWith(cutMark), isCut)
      const kept = isCut ? shown.slice(0, -cutMark.length) : shown
      t.ok(line.startsWith(kept))
      t.ok(kept.length >= Math.min(line.length, 16 * 1024 - 1))
      t.equal(Buffer.from(kept).toString(), kept)
    }) as never
  )
})

test('the lines of the engine are bounded, and the one after a long one is whole, however they are cut', async t => {
  check(
    fc.property(
      fc.nat({ max: 40_000 }),
      fc.array(fc.nat({ max: 40_000 }), { maxLength: 10 }),
      (length, at) => {
        const lines: string[] = []
        const output = new OutputLines(line => lines.push(line))
        for (const piece of pieces(`${'x'.repeat(length)}\nnext\n`, at)) output.write(piece)
        output.end()
        t.same(lines, [length > 16_384 ? `${'x'.repeat(16_384)} … (cut)` : 'x'.repeat(length), 'next'])
      }
    ) as never
  )
})

test('the events of the engine are the same however its stream is cut, and one that is too long takes no other along', async t => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ stream: text }), { maxLength: 10 }), cuts, async (events, at) => {
      const whole = events.map(event => `${JSON.stringify(event)}\n`).join('')
      const seen: unknown[] = []
      for await (const event of jsonLines(
        Readable.from(pieces(Buffer.from(whole), at), { objectMode: false })
      ))
        seen.push(event)
      t.same(seen, events)
    }),
    { seed, numRuns: 100 }
  )
  const long = JSON.stringify({ stream: 'x'.repeat(5 * 2 ** 20) })
  const seen: unknown[] = []
  for await (const event of jsonLines(
    Readable.from(pieces(Buffer.from(`{"a":1}\n${long}\n{"b":2}\n`), [100, 2 ** 20, 4.5 * 2 ** 20]), {
      objectMode: false
    })
  ))
    seen.push(event)
  t.same(seen, [{ a: 1 }, { b: 2 }])
})
