import { execFileSync } from 'node:child_process'
import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import { measureTar } from '../context/archive.js'
import { folder } from './kit.js'

type Header = Parameters<ReturnType<typeof pack>['entry']>[0]

const mark = '22 GNU.sparse.major=1\n'
const sparse = { 'GNU.sparse.major': '1', 'GNU.sparse.minor': '0', 'GNU.sparse.realsize': '8000000000000' }

async function tarOf(...entries: ReadonlyArray<readonly [header: Header, content: string]>): Promise<Buffer> {
  const tar = pack()
  for (const [header, content] of entries) tar.entry({ ...header, size: undefined }, content)
  tar.finalize()
  return await buffer(tar)
}

async function faultOf(t: Test, tar: Buffer): Promise<string | undefined> {
  const root = await folder(t)
  const found: Array<string | undefined> = []
  const options = { limit: 2 ** 30, signal: new AbortController().signal }
  for (const packing of ['plain', 'gzip'] as const) {
    await writeFile(join(root, packing), packing === 'gzip' ? gzipSync(tar) : tar)
    found.push((await measureTar(join(root, packing), packing, options))?.fault)
  }
  t.equal(found[0], found[1])
  return found[0]
}

/** Writes into the header at `at`, and the right sum. */
function changed(tar: Buffer, at: number, text: string, headerAt = 0): Buffer {
  const copy = Buffer.from(tar)
  const header = copy.subarray(headerAt, headerAt + 512)
  header.write(text, at, 'latin1')
  header.fill(' ', 148, 156)
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
    'latin1'
  )
  return copy
}

test('a file that holds what a sparse one is marked with is not sparse', async t => {
  t.equal(
    await faultOf(t, await tarOf([{ name: 'sparse.go' }, `x ${mark}`.repeat(5000)], [{ name: 'b' }, mark])),
    undefined
  )
})

test('files that are sparse are found wherever they stand', async t => {
  const long = 'x'.repeat(70_000)
  t.equal(await faultOf(t, await tarOf([{ name: 'a', pax: sparse }, 'x'])), 'sparse')
  t.equal(
    await faultOf(
      t,
      await tarOf([{ name: 'a' }, long], [{ name: 'b'.repeat(300) }, long], [{ name: 'c', pax: sparse }, 'x'])
    ),
    'sparse'
  )
  t.equal(
    await faultOf(t, await tarOf([{ name: 'a', pax: { comment: long, ...sparse } }, 'x'])),
    'sparse',
    'in a long header'
  )
})

test('what tar itself packs with --sparse is found in each of its formats', async t => {
  const root = await folder(t)
  await writeFile(join(root, 'holes'), 'x')
  await truncate(join(root, 'holes'), 2 ** 19)
  for (const format of ['gnu', 'oldgnu', 'posix']) {
    const tar = execFileSync('tar', ['-C', root, '--sparse', `--format=${format}`, '-c', 'holes'])
    t.ok(tar.length < 2 ** 18)
    t.equal(await faultOf(t, tar), 'sparse', format)
  }
  const tar = execFileSync('tar', ['-C', root, '--format=gnu', '-c', 'holes'])
  t.equal(await faultOf(t, tar), undefined)
})

test('a size that not all readers understand alike hides no sparse file', async t => {
  const hidden = await tarOf([{ name: 'b', pax: sparse }, 'x'])
  const body = (type: Header['type']): readonly [Header, string] => [{ name: 'a', type }, '']
  const withSize = (tar: Buffer): Buffer => changed(tar, 124, '00000010000\0')
  const first = (tar: Buffer): Buffer => tar.subarray(0, tar.length - 1024)
  t.equal(
    await faultOf(t, Buffer.concat([withSize(first(await tarOf(body('directory')))), hidden])),
    'sparse',
    'a directory'
  )
  const named = changed(changed(withSize(first(await tarOf(body('file')))), 156, '\0'), 0, 'a/')
  t.equal(await faultOf(t, Buffer.concat([named, hidden])), 'unclear', 'an old entry')
  const pax = first(await tarOf([{ name: 'a', pax: { size: '0' } }, '']))
  t.equal(
    await faultOf(t, Buffer.concat([changed(pax, 124, '00000010000\0', 1024), hidden])),
    'sparse',
    'a size in a pax header'
  )
  const odd = changed(first(await tarOf(body('file'))), 124, '-0000000001\0')
  t.equal(await faultOf(t, Buffer.concat([odd, hidden])), 'unclear', 'a size that is no number')
})
