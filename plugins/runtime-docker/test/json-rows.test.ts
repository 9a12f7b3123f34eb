import { Readable } from 'node:stream'
import { test } from 'tap'
import { type JsonRow, jsonRows, longestRowBytes, RowScanner } from '../inventory/json-rows.js'

/** The rows of a text that comes in pieces of so many bytes. */
function rowsOf(text: string, pieceLength = text.length, longest?: number): JsonRow[] {
  const scanner = new RowScanner(longest)
  const bytes = Buffer.from(text)
  const rows: JsonRow[] = []
  for (let at = 0; at < bytes.length; at += pieceLength)
    rows.push(...scanner.write(bytes.subarray(at, at + pieceLength)))
  return [...rows, ...scanner.end()]
}

const listed = [
  { Id: 'a', Labels: { 'a"]}': '\\"}{[', ü: 'ö\\' }, Ports: [[{}], []] },
  'text]',
  12,
  null,
  true,
  []
]
const nested = {
  LayersSize: 12,
  Images: listed,
  Volumes: null,
  Usage: { TotalSize: 3, Items: [{ a: 1 }] },
  Last: []
}

test('the elements of an array are its rows, however the text is cut into pieces', t => {
  for (const text of [
    JSON.stringify(listed),
    JSON.stringify(listed, null, 2),
    ` ${JSON.stringify(listed)}\n`
  ])
    for (const pieceLength of [1, 2, 3, 7, 1000])
      t.same(
        rowsOf(text, pieceLength),
        listed.map(value => ({ path: '', value })),
        `pieces of ${pieceLength}`
      )
  t.same(rowsOf('[]'), [])
  t.end()
})

test('of an object the elements of its arrays are rows, with the names that they lie in, and what is simple is one', t => {
  for (const text of [JSON.stringify(nested), JSON.stringify(nested, null, 1)])
    for (const pieceLength of [1, 5, 1000])
      t.same(rowsOf(text, pieceLength), [
        { path: 'LayersSize', value: 12 },
        ...listed.map(value => ({ path: 'Images', value })),
        { path: 'Volumes', value: null },
        { path: 'Usage.TotalSize', value: 3 },
        { path: 'Usage.Items', value: { a: 1 } }
      ])
  t.same(rowsOf('{}'), [])
  t.same(rowsOf('null'), [{ path: '', value: null }], 'and a value alone is one too')
  t.same(rowsOf('12'), [{ path: '', value: 12 }])
  t.end()
})

test('a text that is cut off, or is no JSON, is no answer', t => {
  const whole = JSON.stringify(nested)
  for (let length = 0; length < whole.length; length++)
    t.throws(
      () => rowsOf(whole.slice(0, length)),
      { code: 'ERR_STREAM_PREMATURE_CLOSE' },
      `${length} characters`
    )
  for (const text of ['<html>', '[{"a":}]', '[1,2] 3', '{"a":tru}', '"text'])
    t.throws(() => rowsOf(text), { code: 'ERR_STREAM_PREMATURE_CLOSE' }, text)
  t.end()
})

test('a row that is too long is left out and counted, and those beside it are there', t => {
  const text = JSON.stringify([{ a: 1 }, { b: 'x'.repeat(200) }, { c: 'y'.repeat(50) }])
  const scanner = new RowScanner(100)
  const rows = [...Buffer.from(text)].flatMap(byte => [...scanner.write(Buffer.from([byte]))])
  t.same(
    [...rows, ...scanner.end()].map(({ value }) => Object.keys(value as object)),
    [['a'], ['c']]
  )
  t.equal(scanner.leftOut, 1)
  t.end()
})

test('a stream is read row by row, says how many were left out, and fails where it is cut', async t => {
  const long = `{"a":"${'x'.repeat(longestRowBytes)}"}`
  let leftOut: number | undefined
  const read = async (pieces: readonly string[]): Promise<unknown[]> => {
    const values: unknown[] = []
    const rows = jsonRows(Readable.from(pieces.map(piece => Buffer.from(piece))), count => {
      leftOut = count
    })
    for await (const { value } of rows) values.push(value)
    return values
  }
  t.same(await read(['[1,', '{"b":', '2}', ']']), [1, { b: 2 }])
  t.equal(leftOut, 0)
  t.same(await read(['[', long, ',3]']), [3])
  t.equal(leftOut, 1)
  await t.rejects(read(['[1,', '{"b"']), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
})
