import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'tap'
import { type Header, pack } from 'tar-stream'
import { checkedTar } from '../../sdk/tar/checked-tar.js'
import { TarCheck } from '../../sdk/tar/tar-check.js'

async function tarOf(
  entries: ReadonlyArray<Partial<Header> & { readonly name: string } & { readonly content?: string }>
): Promise<Buffer> {
  const tar = pack()
  for (const { content, ...header } of entries) tar.entry(header, content ?? '')
  tar.finalize()
  return await buffer(Readable.from(tar))
}

/** In pieces that end anywhere. */
function read(tar: Buffer, length = 7): TarCheck {
  const check = new TarCheck()
  for (let at = 0; at < tar.length; at += length) check.read(tar.subarray(at, at + length))
  return check
}

const long = `volume/${'deep/'.repeat(60)}file`
const fine: Array<Partial<Header> & { readonly name: string } & { content?: string }> = [
  { name: 'volume/', type: 'directory' },
  { name: 'volume/a', content: 'x'.repeat(1000) },
  { name: 'volume/folder/', type: 'directory' },
  { name: 'volume/folder/empty', content: '' },
  { name: 'volume/with blank and ümläut', content: 'y' },
  { name: 'volume/..a/b..', content: '' },
  { name: long, content: 'z' },
  { name: 'volume/out', type: 'symlink', linkname: '../../etc/passwd' },
  { name: 'volume/hard', type: 'link', linkname: 'volume/a' },
  { name: 'volume/fifo', type: 'fifo' }
]

test('the tar of a volume passes, its files are counted, and not a byte of it is changed', async t => {
  const tar = await tarOf(fine)
  for (const length of [1, 7, 512, 513, tar.length])
    t.match(read(tar, length), { files: 5, isWhole: true }, `in pieces of ${length}`)
  const { content, check } = checkedTar(Readable.from([tar.subarray(0, 700), tar.subarray(700)]))
  t.ok((await buffer(content)).equals(tar))
  t.equal(check.files, 5)
})

test('what is not in the volume, or is a device, ends it', async t => {
  const hostile: ReadonlyArray<Partial<Header> & { readonly name: string } & { content?: string }> = [
    { name: '../x', content: 'x' },
    { name: '/etc/passwd', content: 'x' },
    { name: 'etc/passwd', content: 'x' },
    { name: 'volume/../etc/passwd', content: 'x' },
    { name: 'volume/a/../../../etc/passwd', content: 'x' },
    { name: 'volume//etc', content: 'x' },
    { name: 'volume/./x', content: 'x' },
    { name: './volume/x', content: 'x' },
    { name: 'volumes/x', content: 'x' },
    { name: `volume/${'a/'.repeat(80)}../${'../'.repeat(90)}etc/passwd`, content: 'x' },
    { name: 'volume/l', type: 'link', linkname: '/etc/shadow' },
    { name: 'volume/l', type: 'link', linkname: 'volume/../../etc/shadow' },
    { name: 'volume/l', type: 'link', linkname: `volume/${'../'.repeat(60)}etc/shadow` },
    { name: 'volume/sda', type: 'block-device', devmajor: 8 },
    { name: 'volume/mem', type: 'character-device', devmajor: 1 },
    { name: 'volume/x', content: 'x', pax: { path: '../../etc/passwd' } as never }
  ]
  for (const entry of hostile) {
    const tar = await tarOf([...fine, entry])
    t.throws(() => read(tar), { name: 'TarFault' }, JSON.stringify(entry).slice(0, 100))
    await t.rejects(buffer(checkedTar(Readable.from([tar])).content), { name: 'TarFault' })
  }
})

test('a tar that is cut off, or none, is no volume', async t => {
  const tar = await tarOf(fine)
  for (const length of [0, 511, 512, 1200, tar.length - 1024, tar.length - 513])
    await t.rejects(
      buffer(checkedTar(Readable.from([tar.subarray(0, length)])).content),
      { name: 'TarFault' },
      `of ${length} bytes`
    )
  await t.rejects(buffer(checkedTar(Readable.from([Buffer.alloc(5000, 'x')])).content), { name: 'TarFault' })
})
