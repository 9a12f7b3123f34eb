import { mkdtemp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { makeKeyPair } from '../../../sdk/age/index.js'
import { bytesOf, isEncrypted, readParts, verifyArchive } from '../archive/archive-reader.js'
import { gzipHead, manifestName, writeArchive } from '../archive/archive-writer.js'
import { formatName, type Manifest, type TablePart } from '../archive/manifest.js'

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'busbar-archive-'))
  t.teardown(async () => {
    await rm(made, { recursive: true, force: true })
  })
  return made
}

async function* chunks(total: number, size = 100_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < total; at += size) yield Buffer.alloc(Math.min(size, total - at), `row ${at}\n`)
}

const manifestOf = (tables: TablePart[]): Manifest => ({
  format: formatName,
  version: 1,
  id: '00000000-0000-4000-8000-000000000000',
  created_at: '2026-11-28T02:00:00.000Z',
  release: '0.1.0',
  postgres: { version: '18.0', major: 18 },
  variables: [],
  catalog: {
    schemas: [],
    extensions: [],
    definitions: [],
    sequences: [],
    tables: [],
    constraints: [],
    indexes: [],
    foreignKeys: [],
    rest: [],
    refresh: []
  },
  tables,
  files: [],
  keys: null,
  key_ids: [],
  left_out: []
})

async function write(file: string, recipients: readonly string[]): Promise<void> {
  await writeArchive(
    { file, recipients, modifiedAt: new Date(0), signal: new AbortController().signal },
    async add => {
      const big = await add('tables/000001', chunks(3_500_000))
      const none = await add('tables/000002', chunks(0))
      return manifestOf([
        { ...big, schema: 'a', table: 'big' },
        { ...none, schema: 'a', table: 'none' }
      ])
    }
  )
}

/** With one bit of a byte flipped that makes another archive of it. */
function flipped(whole: Buffer, place: number): Buffer {
  for (let bit = place; bit < place + 8; bit++) {
    const bytes = Buffer.from(whole)
    bytes.writeUInt8(bytes.readUInt8(place) ^ (1 << (bit % 8)), place)
    if (place < gzipHead.length || !isSameInside(whole, bytes)) return bytes
  }
  throw new Error(`byte ${place} means nothing`)
}

/** Deflate has several ways to say the same: that what repeats is found further back. */
function isSameInside(one: Buffer, other: Buffer): boolean {
  try {
    return gunzipSync(one).equals(gunzipSync(other))
  } catch {
    return false
  }
}

test('what is written is read again, encrypted or not, in pieces', async t => {
  const directory = await folder(t)
  const { identity, recipient } = await makeKeyPair()
  for (const [name, recipients, key] of [
    ['plain', [], undefined],
    ['sealed', [recipient], identity]
  ] as const) {
    const file = join(directory, name)
    await write(file, recipients)
    t.equal(await isEncrypted(file), recipients.length > 0)
    t.equal((await stat(file)).mode & 0o777, 0o600)
    const { tables } = await verifyArchive({ file, identity: key })
    t.match(tables, [
      { bytes: 3_500_000, pieces: 4 },
      { bytes: 0, pieces: 0 }
    ])
    for await (const part of readParts({ file, identity: key }))
      if (part.name !== manifestName) t.equal((await bytesOf(part.bytes)).length, 3_500_000)
  }
})

test('any of several keys opens an archive, and another one does not', async t => {
  const directory = await folder(t)
  const [one, two, other] = await Promise.all([makeKeyPair(), makeKeyPair(), makeKeyPair()])
  const file = join(directory, 'archive')
  await write(file, [one.recipient, two.recipient])
  for (const { identity } of [one, two]) await verifyArchive({ file, identity })
  await t.rejects(verifyArchive({ file, identity: other.identity }), {
    message: /recovery key does not open/
  })
})

test('an archive of which a bit was flipped, or the end is missing, is refused', async t => {
  const directory = await folder(t)
  const { identity, recipient } = await makeKeyPair()
  for (const [name, recipients, key] of [
    ['plain', [], undefined],
    ['sealed', [recipient], identity]
  ] as const) {
    const file = join(directory, name)
    await write(file, recipients)
    const whole = await readFile(file)
    const damaged = join(directory, `${name}.damaged`)
    const places = [0, 2, 3, 4, 8, 9, 12, whole.length - 1, whole.length - 9, whole.length >> 1]
    for (let at = 40; at < whole.length; at += Math.ceil(whole.length / 24)) places.push(at)
    for (const place of places) {
      await writeFile(damaged, flipped(whole, place))
      await t.rejects(
        isEncrypted(damaged).then(async () => await verifyArchive({ file: damaged, identity: key })),
        { name: 'ArchiveError' },
        `${name}, byte ${place} of ${whole.length}`
      )
    }
    for (const length of [0, 5, 100, whole.length >> 1, whole.length - 1]) {
      await writeFile(damaged, whole)
      await truncate(damaged, length)
      await t.rejects(
        isEncrypted(damaged).then(async () => await verifyArchive({ file: damaged, identity: key })),
        { name: 'ArchiveError' },
        `${name}, cut off at ${length}`
      )
    }
  }
})

test('an archive that cannot be written whole leaves nothing behind', async t => {
  const directory = await folder(t)
  const file = join(directory, 'archive')
  const failing = writeArchive(
    { file, recipients: [], modifiedAt: new Date(0), signal: new AbortController().signal },
    async add => {
      await add('tables/000001', chunks(2_000_000))
      throw new Error('the database went away')
    }
  )
  await t.rejects(failing, { message: 'the database went away' })
  await t.rejects(open(file, 'r'))
  await t.rejects(open(`${file}.part`, 'r'))
  const abort = new AbortController()
  const aborted = writeArchive(
    { file, recipients: [], modifiedAt: new Date(0), signal: abort.signal },
    async add => {
      await add('tables/000001', chunks(2_000_000))
      abort.abort(new Error('the platform stops'))
      await add('tables/000002', chunks(2_000_000))
      return manifestOf([])
    }
  )
  await t.rejects(aborted)
  await t.rejects(open(`${file}.part`, 'r'))
})

test('an archive whose manifest is longer than a restore reads is not written', async t => {
  const directory = await folder(t)
  const file = join(directory, 'archive')
  const writing = async (left: string): Promise<number> =>
    await writeArchive(
      { file, recipients: [], modifiedAt: new Date(0), signal: new AbortController().signal },
      async () => ({ ...manifestOf([]), left_out: [left] })
    )
  await t.rejects(writing('x'.repeat(64 * 1024 * 1024)), {
    name: 'ArchiveError',
    message: /0 files, 0 tables\) is longer than the 64 MiB that a restore reads: take files away/
  })
  await t.rejects(open(file, 'r'))
  await t.rejects(open(`${file}.part`, 'r'))
  await writing('x'.repeat(63 * 1024 * 1024))
  t.match(await verifyArchive({ file, identity: undefined }), { files: [] }, 'one that is written is read')
})
