import { execFileSync } from 'node:child_process'
import { mkdtempSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'tap'
import { type Header, pack } from 'tar-stream'
import { fileHeader } from '../context/tar-header.js'
import { TarMeter } from '../context/tar-meter.js'

const cluster = 4096

function measured(tar: Uint8Array, piece = 1000) {
  const meter = new TarMeter()
  for (let at = 0; at < tar.length; at += piece) meter.push(Buffer.from(tar.subarray(at, at + piece)))
  return { ...meter.unpacked, fault: meter.fault }
}

async function tarOf(
  ...entries: ReadonlyArray<readonly [Partial<Header> & { name: string }, content?: string]>
): Promise<Buffer> {
  const tar = pack()
  for (const [header, content] of entries) tar.entry(header, content ?? '')
  tar.finalize()
  return await buffer(tar)
}

/** Of a type, with words of a pax header before it where there are any. */
function entry(
  type: string,
  size: number,
  content: Buffer = Buffer.alloc(Math.ceil(size / 512) * 512)
): Buffer {
  const header = fileHeader('x', size)
  header.write(type, 156, 'latin1')
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1')
  return Buffer.concat([header, content])
}

function pax(record: string, type = 'x'): Buffer {
  const text = Buffer.alloc(Math.ceil(record.length / 512) * 512)
  text.write(record)
  return entry(type, record.length, text)
}
const end = Buffer.alloc(1024)
/** Of what is no content, in letters. */
const kept = (size: number): number => Math.ceil((size * 4) / 3)

test('each entry takes an inode, and its size in whole clusters', async t => {
  const tar = await tarOf(
    [{ name: 'a/', type: 'directory' }],
    [{ name: 'a/empty' }, ''],
    [{ name: 'a/one' }, 'x'],
    [{ name: 'a/large' }, 'x'.repeat(2 * cluster + 1)],
    [{ name: `a/${'long'.repeat(60)}` }, 'x'],
    [{ name: 'link', type: 'symlink', linkname: 'a' }],
    [{ name: 'hard', type: 'link', linkname: 'a/one' }]
  )
  const content = 1 + (2 * cluster + 1) + 1
  const bytes = 7 * 512 + (1 + 1 + 3 + 1) * cluster + kept(tar.length - end.length - content)
  for (const piece of [1, 511, 512, 5000, tar.length])
    t.same(measured(tar, piece), { bytes, inodes: 6, fault: undefined }, `${piece}`)
  t.same(measured(Buffer.concat([tar, Buffer.from('garbage behind the end'.repeat(100))])).fault, undefined)
  t.end()
})

test('what the engine may read otherwise, or of any size, is told', t => {
  const file = entry('0', 10)
  for (const [name, parts, expected] of [
    ['a size in words', [pax('16 size=1000000\n'), entry('0', 0, Buffer.alloc(1000448)), end], 245],
    ['a link with a size', [entry('1', 1000, Buffer.alloc(0)), file, end], 1],
    ['a file of tars', [entry('0', 1024, entry('S', 512)), end], 1],
    ['words and a long name', [pax('9 path=d\n'), entry('L', 10), file, end], 2],
    ['words for all before words for one', [pax('9 path=d\n', 'g'), pax('9 path=d\n'), file, end], 2],
    ['a sparse file', [entry('S', 512), end], 'sparse'],
    ['a sparse file in words', [pax('22 GNU.sparse.major=1\n'), file, end], 'sparse'],
    ['a sparse file in words of all', [pax('22 GNU.sparse.major=1\n', 'g'), file, end], 'sparse'],
    ['an old entry', [entry('\0', 10), end], 'unclear'],
    ['words twice', [pax('10 size=5\n'), pax('9 path=d\n'), file, end], 'unclear'],
    [
      'words for all behind words for one',
      [pax('10 size=5\n'), pax('9 path=d\n', 'g'), file, end],
      'unclear'
    ],
    ['a size in words of all', [pax('10 size=5\n', 'g'), file, end], 'unclear'],
    ['a size that is none', [pax('11 size=-5\n'), file, end], 'unclear'],
    ['words that count themselves wrong', [pax('99 size=5\n'), file, end], 'unclear'],
    ['words without an end', [pax('9 size=5x'), file, end], 'unclear'],
    ['long words', [entry('x', 2 ** 18), file, end], 'unclear'],
    ['many words', [pax('5 a=\n'.repeat(1001)), file, end], 'unclear'],
    ['a block of zeros between entries', [file, Buffer.alloc(512), file, end], 'unclear'],
    ['no tar', [Buffer.alloc(1024, 'x')], 'unclear']
  ] as const) {
    const { bytes, fault } = measured(Buffer.concat([...parts]))
    t.equal(fault ?? Math.floor(bytes / cluster), expected, name)
  }
  t.end()
})

test('a sparse file as GNU tar packs it is told in each of its formats', t => {
  const folder = mkdtempSync(join(tmpdir(), 'busbar-tar-meter-'))
  t.teardown(() => execFileSync('rm', ['-rf', folder]))
  writeFileSync(join(folder, 'hole'), '')
  truncateSync(join(folder, 'hole'), 2 ** 30)
  for (const format of ['gnu', 'posix'])
    t.equal(
      measured(execFileSync('tar', ['-S', `--format=${format}`, '-C', folder, '-c', 'hole'])).fault,
      'sparse',
      format
    )
  t.end()
})

test('a directory that only names of entries speak of counts, once', async t => {
  const inodes = async (...names: string[]): Promise<number> =>
    measured(
      await tarOf(...names.map(name => [{ name, type: name.endsWith('/') ? 'directory' : 'file' }] as const))
    ).inodes
  t.equal(await inodes('x', './y'), 2)
  t.equal(await inodes('a/b/c/x', 'a/b/c/y', 'a/b/z', '/a//b/./w'), 3 + 4)
  t.equal(await inodes('a/b/', 'a/b/x', 'a/c/'), 3 + 1, 'with those that are entries')
  const deep = 'd/'.repeat(200)
  t.equal(await inodes(`${deep}x`), 201, 'in words')
  t.equal(await inodes(`${'n'.repeat(99)}/${deep.slice(0, 150)}x`), 1 + 75 + 1, 'in the prefix')
  const gnu = Buffer.alloc(512)
  gnu.write(`${deep}x`)
  t.equal(measured(Buffer.concat([entry('L', 401, gnu), entry('0', 0), end])).inodes, 201, 'in a long name')
  t.equal(measured(Buffer.concat([pax('12 path=a/b\n'), entry('5', 0), end])).inodes, 2 + 1)
})

test('directories that nobody can make, or nobody needs, cannot be told', async t => {
  for (const name of ['d/'.repeat(257), 'd'.repeat(4097)])
    t.equal(measured(await tarOf([{ name: `${name}/x` }])).fault, 'unclear')
  const many = await tarOf(
    ...Array.from({ length: 1100 }, (_, index) => [{ name: `${index}/${'d/'.repeat(230)}x` }] as const)
  )
  t.equal(measured(many, 2 ** 16).fault, 'unclear')
})

test('what is no content is kept, whatever it says and wherever it stands', t => {
  const file = entry('0', 10)
  const alone = measured(Buffer.concat([file, end])).bytes
  const comment = `60000 comment=${'x'.repeat(59985)}\n`
  for (const [name, parts] of [
    ['a comment', [pax(comment), file, end]],
    ['a comment for all', [pax(comment, 'g'), file, end]],
    ['the end', [file, end, Buffer.alloc(60000, 'x')]]
  ] as const)
    t.ok(measured(Buffer.concat([...parts])).bytes >= alone + kept(60000), name)
  t.end()
})

test('a link with a target of very many parts cannot be told, however it is said', async t => {
  const told = async (parts: number, name = 'link'): Promise<string | undefined> =>
    measured(await tarOf([{ name, type: 'symlink', linkname: 'd/'.repeat(parts - 1) + name }])).fault
  t.same(
    [await told(64), await told(65), await told(40), await told(1000)],
    [undefined, 'unclear', undefined, 'unclear']
  )
  const target = Buffer.alloc(512)
  target.write('../'.repeat(100))
  t.equal(measured(Buffer.concat([entry('K', 300, target), entry('2', 0), end])).fault, 'unclear')
  t.equal(
    measured(await tarOf([{ name: 'x', type: 'symlink', linkname: '/'.repeat(99) }])).fault,
    'unclear',
    'in its header'
  )
})
