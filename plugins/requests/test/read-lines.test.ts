import { test } from 'tap'
import { longestLine, readLines } from '../files/read-lines.js'
import { isRotatedName } from '../files/rotated-files.js'

const most = 1000
const read = (text: string, more: { isMidLine?: boolean; isLast?: boolean; most?: number } = {}) =>
  readLines(Buffer.from(text), { isMidLine: false, isLast: false, most, ...more })

test('a piece of a file holds whole lines, and the beginning of one is left', async t => {
  t.same(read('a\nb\r\n\nc'), { lines: ['a', 'b'], used: 6, skipped: 0, isMidLine: false })
  t.same(read('a\nb\nc\n', { most: 2 }), { lines: ['a', 'b'], used: 4, skipped: 0, isMidLine: false })
  t.same(read('abc'), { lines: [], used: 0, skipped: 0, isMidLine: false })
  t.same(read('abc', { isLast: true }), { lines: ['abc'], used: 3, skipped: 0, isMidLine: false })
  t.same(read(''), { lines: [], used: 0, skipped: 0, isMidLine: false })
  t.same(read('', { isLast: true }), { lines: [], used: 0, skipped: 0, isMidLine: false })
})

test('bytes that are no UTF-8 make no line fail', async t => {
  const { lines } = readLines(Buffer.from([0x61, 0xff, 0xc3, 0x0a, 0x62, 0x0a]), {
    isMidLine: false,
    isLast: false,
    most
  })
  t.same(lines, ['a\ufffd\ufffd', 'b'])
})

test('a line that is too long is passed over, over as many pieces as it takes, and counted once', async t => {
  const long = 'x'.repeat(longestLine + 1)
  const longest = 'y'.repeat(longestLine)
  t.same(read(`a\n${long}\n${longest}\nb\n`).lines, ['a', longest, 'b'])
  t.match(read(`a\n${long}\nb\n`), { skipped: 1, isMidLine: false })
  t.match(read(`a\n${long}`), { lines: ['a'], used: long.length + 2, skipped: 1, isMidLine: true })
  t.match(read(long, { isMidLine: true }), { lines: [], used: long.length, skipped: 0, isMidLine: true })
  t.match(read('x\nb\n', { isMidLine: true }), { lines: ['b'], used: 4, skipped: 0, isMidLine: false })
})

test('a rotated file is one of the same name, with a time or a number in it', async t => {
  for (const name of [
    'access-2026-01-31T12-00-00.000.log',
    'access.1.log',
    'access_20260131.log',
    'access.log.1'
  ])
    t.ok(isRotatedName(name, 'access.log'), name)
  for (const name of [
    'access.log',
    'access-admin.log',
    'access2.log',
    'access-2026.log.gz',
    'access.log.gz',
    'access.log.1.gz',
    'error-2026.log'
  ])
    t.notOk(isRotatedName(name, 'access.log'), name)
})
