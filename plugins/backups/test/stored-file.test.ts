import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type Test, test } from 'tap'
import { makeKeyPair } from '../../../sdk/age/index.js'
import { LocalStorage } from '../destinations/local-storage.js'
import { openFile, type StoredFile, storeDump, verifyFile } from '../runs/stored-file.js'

const { signal } = new AbortController()
const { identity, recipient } = await makeKeyPair()
const mebibyte = 2 ** 20

async function storageOf(t: Test): Promise<{ readonly storage: LocalStorage; readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-stored-'))
  t.teardown(async () => await rm(folder, { recursive: true, force: true }))
  return { storage: new LocalStorage(folder), folder }
}

/** Half of it becomes less by compression; in pieces as programs write them. */
function* rows(bytes: number, pieceBytes = 8192): Generator<Buffer> {
  const piece = Buffer.concat([randomBytes(pieceBytes / 2), Buffer.alloc(pieceBytes / 2, 'row ')])
  for (let made = 0; made < bytes; made += pieceBytes) {
    piece.writeUInt32LE(made / pieceBytes, 0)
    yield Buffer.from(piece)
  }
}

const dumpOf = (content: Readable) => ({ format: 'lines', content, end: async () => ({ rows: 7 }) })

test('a dump of any length is stored and read again in bounded memory', { timeout: 200_000 }, async t => {
  const { storage } = await storageOf(t)
  const bytes = 400 * mebibyte
  // What is needed once, whatever the length.
  const small = dumpOf(Readable.from(rows(mebibyte)))
  await storeDump(storage, { key: 'small', dump: small, recipients: [recipient] }, { signal })
  const before = process.memoryUsage.rss()
  let most = before
  const watching = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 20)
  t.teardown(() => clearInterval(watching))
  const facts = await storeDump(
    storage,
    { key: 'large', dump: dumpOf(Readable.from(rows(bytes))), recipients: [recipient] },
    { signal }
  )
  t.equal(facts.rawBytes, bytes)
  t.equal(facts.rows, 7)
  const file: StoredFile = { key: 'large', identity, ...facts }
  await verifyFile(storage, file, { signal })
  let read = 0
  let isSame = true
  for await (const chunk of openFile(storage, file, { signal }).content as AsyncIterable<Buffer>) {
    isSame &&= chunk.length > 0
    read += chunk.length
  }
  clearInterval(watching)
  t.ok(isSame)
  t.equal(read, bytes)
  const above = Math.round((most - before) / mebibyte)
  t.ok(above <= 100, `${above} MiB above what it had`)
})

test('a file that changes after it was verified fails at its end', async t => {
  const { storage, folder } = await storageOf(t)
  const dump = dumpOf(Readable.from(rows(4 * mebibyte)))
  const facts = await storeDump(storage, { key: 'file', dump, recipients: [recipient] }, { signal })
  const file: StoredFile = { key: 'file', identity, ...facts }
  await verifyFile(storage, file, { signal })
  await truncate(join(folder, 'file'), facts.bytes - 1)
  const read = async () => {
    for await (const chunk of openFile(storage, file, { signal }).content) void chunk
  }
  await t.rejects(read(), /is damaged: it is \d+ bytes long/)
  await t.rejects(verifyFile(storage, { ...file, key: 'nothing' }, { signal }), /is not there any more/)
})

test('a changed bit is found on the way by who has not verified the file first', async t => {
  const { storage, folder } = await storageOf(t)
  // Longer than what is read at once: the checksum is known at the end alone.
  const dump = dumpOf(Readable.from(Array.from({ length: 8 }, () => randomBytes(mebibyte))))
  const facts = await storeDump(storage, { key: 'file', dump, recipients: [recipient] }, { signal })
  const file: StoredFile = { key: 'file', identity, ...facts }
  const good = await readFile(join(folder, 'file'))
  const read = async () => {
    for await (const chunk of openFile(storage, file, { signal }).content) void chunk
  }
  for (const [at, words] of [
    [10, /is damaged: it cannot be decrypted/],
    [good.length >> 1, /is damaged: it cannot be decrypted/],
    [good.length - 1, /is damaged/]
  ] as const) {
    const bad = Buffer.from(good)
    bad.writeUInt8(bad.readUInt8(at) ^ 1, at)
    await writeFile(join(folder, 'file'), bad)
    await t.rejects(read(), words, `byte ${at}`)
  }
  await writeFile(join(folder, 'file'), good)
  await t.resolves(read())
})

test('who stops reading leaves nothing open, and who aborts is told why', async t => {
  const { storage } = await storageOf(t)
  const dump = dumpOf(Readable.from(rows(8 * mebibyte)))
  const facts = await storeDump(storage, { key: 'file', dump, recipients: [recipient] }, { signal })
  const file: StoredFile = { key: 'file', identity, ...facts }
  const { content } = openFile(storage, file, { signal })
  for await (const chunk of content) {
    t.ok(chunk.length > 0)
    break
  }
  t.ok(content.destroyed)
  const end = new AbortController()
  const stuck = dumpOf(
    Readable.from(
      (async function* () {
        yield Buffer.alloc(10)
        end.abort(new Error('the platform stops'))
        await new Promise(() => {})
      })()
    )
  )
  const storing = storeDump(
    storage,
    { key: 'stuck', dump: stuck, recipients: [recipient] },
    { signal: end.signal }
  )
  await t.rejects(storing, /the platform stops/)
  t.equal(await storage.size('stuck', { signal }), null)
})
