import { PassThrough, type Readable } from 'node:stream'
import { test } from 'tap'
import { fileHeader } from '../context/tar-header.js'
import { ContainerFiles } from '../engines/container-files.js'

/** A file in a container, as the engine begins to send it; the engine keeps the container until the stream has ended. */
function lab(size: number, content = Buffer.alloc(0)) {
  const sent = new PassThrough()
  sent.write(Buffer.concat([fileHeader('file', size), content]))
  const files = new ContainerFiles(
    {
      getFiles: async () => sent,
      putFiles: async (_id, _path, tar: Readable) => void tar.resume(),
      exec: async () => 0
    },
    'one',
    new AbortController().signal
  )
  return { sent, files }
}

void test('a file that is too large is not read, and the engine does not go on sending it', async t => {
  const { sent, files } = lab(5000)
  await t.rejects(files.read('/x', 4999), { message: '/x has 5000 bytes' })
  t.ok(sent.destroyed)
})

void test('a file that was read is not held any longer, whatever follows it', async t => {
  const { sent, files } = lab(3, Buffer.from('abc'))
  t.equal((await files.read('/x', 10)).toString(), 'abc')
  t.ok(sent.destroyed)
})

void test('one that was opened can be left without a look', async t => {
  const { sent, files } = lab(3)
  const { size, close } = await files.open('/x')
  t.equal(size, 3)
  close()
  t.ok(sent.destroyed)
})

void test('a large file goes as it is read, and not at all where it has changed meanwhile', async t => {
  const received: Buffer[] = []
  const files = new ContainerFiles(
    {
      getFiles: async () => new PassThrough(),
      putFiles: async (_id, _path, tar: Readable) => {
        for await (const piece of tar) received.push(piece as Buffer)
      },
      exec: async () => 0
    },
    'one',
    new AbortController().signal
  )
  const content = () =>
    (async function* () {
      yield Buffer.from('abc')
      yield Buffer.from('de')
    })()
  await files.writeLarge('/x', { name: 'pack', size: 5, content: content() })
  const tar = Buffer.concat(received)
  t.same(tar.subarray(0, 512), fileHeader('pack', 5))
  t.equal(tar.toString('latin1', 512, 517), 'abcde')
  t.equal(tar.length, 4 * 512)
  for (const size of [4, 6])
    await t.rejects(files.writeLarge('/x', { name: 'pack', size, content: content() }), {
      message: 'pack has changed while it was read'
    })
})

void test('attributes before a file are passed over, as many as 64 KiB of them', async t => {
  const attributes = (size: number): Buffer => {
    const header = fileHeader('attributes', size)
    const type = header.length - 512 + 156
    // The sum of a header counts its type.
    header.write('x', type, 'latin1')
    const sum =
      Number.parseInt(header.toString('latin1', 148, 154), 8) + 'x'.charCodeAt(0) - '0'.charCodeAt(0)
    header.write(sum.toString(8).padStart(6, '0'), 148, 'latin1')
    return Buffer.concat([header, Buffer.alloc(size)])
  }
  const read = async (...sizes: readonly number[]): Promise<string> => {
    const sent = new PassThrough()
    sent.end(
      Buffer.concat([...sizes.map(attributes), fileHeader('file', 3), Buffer.from('abc'), Buffer.alloc(509)])
    )
    const files = new ContainerFiles(
      { getFiles: async () => sent, putFiles: async () => {}, exec: async () => 0 },
      'one',
      new AbortController().signal
    )
    return (await files.read('/x', 10)).toString()
  }
  const whole = 64 * 1024 - 512
  t.equal(await read(512), 'abc')
  t.equal(await read(whole), 'abc')
  await t.rejects(read(whole, 512), { message: /what should be a file is none/ })
  await t.rejects(read(whole + 1024), { message: /what should be a file is none/ })
})
