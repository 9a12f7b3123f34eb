import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { BackupStorage } from '../api.js'

const signal = new AbortController().signal

async function* chunks(bytes: Buffer, length = 100_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function* failing(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
  throw new Error('the dump was cut off')
}

async function whole(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const chunk of source) all.push(Buffer.from(chunk))
  return Buffer.concat(all)
}

/** What each kind of destination has to do. `open` gives an empty one. */
export async function provesDestination(t: Test, open: () => Promise<BackupStorage>): Promise<void> {
  const storage = await open()

  await t.test('it works, and a trial leaves nothing', async t => {
    await storage.test({ signal })
    t.equal(await storage.size('trial', { signal }), null)
  })

  await t.test('what is put is got, of any length, and from any byte on', async t => {
    // Beyond one part of an upload, and at its border.
    for (const length of [0, 1, 70_000, 16 * 1024 * 1024, 16 * 1024 * 1024 + 1, 40_000_000]) {
      const bytes = randomBytes(length)
      await storage.put('a/b/file.gz', chunks(bytes), { signal })
      t.equal(await storage.size('a/b/file.gz', { signal }), length)
      t.ok((await whole(await storage.get('a/b/file.gz', { signal }))).equals(bytes), `${length} bytes`)
      if (length < 2) continue
      const from = length - 2
      t.ok((await whole(await storage.get('a/b/file.gz', { signal, from }))).equals(bytes.subarray(from)))
    }
  })

  await t.test('a file is replaced whole', async t => {
    await storage.put('replaced', chunks(Buffer.from('one')), { signal })
    await storage.put('replaced', chunks(Buffer.from('two, longer')), { signal })
    t.equal((await whole(await storage.get('replaced', { signal }))).toString(), 'two, longer')
  })

  await t.test('what fails in the middle is not there, and what was there stays', async t => {
    for (const length of [10, 20_000_000]) {
      await t.rejects(storage.put('half', failing(randomBytes(length)), { signal }), /the dump was cut off/)
      t.equal(await storage.size('half', { signal }), null)
    }
    await storage.put('kept', chunks(Buffer.from('before')), { signal })
    await t.rejects(storage.put('kept', failing(Buffer.from('after')), { signal }))
    t.equal((await whole(await storage.get('kept', { signal }))).toString(), 'before')
  })

  await t.test('an abort ends it with its reason, and nothing is there', async t => {
    const end = new AbortController()
    const content = async function* () {
      yield randomBytes(100)
      end.abort(new Error('the platform stops'))
      yield randomBytes(100)
    }
    await t.rejects(storage.put('aborted', content(), { signal: end.signal }), /the platform stops/)
    t.equal(await storage.size('aborted', { signal }), null)
  })

  await t.test('what is removed is gone, and to remove nothing is no failure', async t => {
    await storage.put('gone', chunks(Buffer.from('x')), { signal })
    await storage.remove('gone', { signal })
    await storage.remove('gone', { signal })
    t.equal(await storage.size('gone', { signal }), null)
    await t.rejects(
      (async () => await whole(await storage.get('gone', { signal })))(),
      { name: 'StorageError' },
      'to get nothing is one'
    )
  })
}
