import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract as makeExtract } from 'tar-stream'
import { gzipHead, manifestName } from './archive-writer.js'
import { decrypting } from './encryption.js'
import { ArchiveError, longestManifest, type Manifest, type PartFacts, parseManifest } from './manifest.js'

const ageMark = 'age-encryption.org/v1\n'
const readBytes = 256 * 1024

interface ArchiveFile {
  readonly file: string
  /** The recovery key, for an archive that is encrypted. */
  readonly identity: string | undefined
}

interface Entry extends AsyncIterable<Buffer> {
  readonly header: { readonly name: string }
  resume(): unknown
}

/** Some bytes under one name. `bytes` is read before the next part is asked for. */
interface Part {
  readonly name: string
  readonly bytes: AsyncIterable<Buffer>
}

/** By its first bytes. Throws an `ArchiveError` for what is neither encrypted nor compressed. */
export async function isEncrypted(file: string): Promise<boolean> {
  const handle = await open(file, 'r')
  try {
    const head = Buffer.alloc(ageMark.length)
    const { bytesRead } = await handle.read(head, 0, head.length, 0)
    const read = head.subarray(0, bytesRead)
    if (read.toString('latin1') === ageMark) return true
    if (read.subarray(0, gzipHead.length).equals(gzipHead)) return false
    throw new ArchiveError(`${file} is no backup of this platform, or is damaged`)
  } finally {
    await handle.close()
  }
}

/** The parts of an archive, in their order. What is damaged or not whole ends in an `ArchiveError`. */
export async function* readParts({ file, identity }: ArchiveFile): AsyncGenerator<Part> {
  const extract = makeExtract()
  const source = createReadStream(file, { highWaterMark: readBytes })
  const gunzip = createGunzip({ chunkSize: readBytes })
  const read =
    identity === undefined
      ? pipeline(source, gunzip, extract)
      : pipeline(source, decrypting(identity), gunzip, extract)
  // Whoever reads gets the error.
  read.catch(() => {})
  const explain: Explain = async error => {
    if (error instanceof ArchiveError) return error
    extract.destroy()
    source.destroy()
    // What failed first is the reason, and not what came of it.
    const reason = await read.then(
      () => error,
      (cause: unknown) => cause
    )
    return reason instanceof ArchiveError
      ? reason
      : new ArchiveError(`the archive is damaged or not whole: ${messageOf(reason)}`, { cause: reason })
  }
  try {
    yield* partsOf(extract as unknown as AsyncIterable<Entry>, explain)
    await read.catch(async (error: unknown) => {
      throw await explain(error)
    })
  } finally {
    source.destroy()
    extract.destroy()
  }
}

type Explain = (error: unknown) => Promise<ArchiveError>

async function* partsOf(entries: AsyncIterable<Entry>, explain: Explain): AsyncGenerator<Part> {
  const iterator = entries[Symbol.asyncIterator]()
  const proceed = async (): Promise<IteratorResult<Entry>> =>
    await iterator.next().catch(async (error: unknown) => {
      throw await explain(error)
    })
  let next = await proceed()
  const follows = (name: string): boolean =>
    next.done !== true && placeOf(next.value.header.name).name === name
  while (next.done !== true) {
    const { name } = placeOf(next.value.header.name)
    yield { name, bytes: pieces(name) }
    // What nobody wanted to read stands before the next part.
    while (follows(name)) {
      next.value?.resume()
      next = await proceed()
    }
  }

  async function* pieces(name: string): AsyncGenerator<Buffer> {
    for (let piece = 1; follows(name); piece++) {
      const entry = next.value as Entry
      if (placeOf(entry.header.name).piece !== piece)
        throw new ArchiveError(`the archive lacks piece ${piece} of ${name}`)
      try {
        for await (const chunk of entry) yield chunk
      } catch (error) {
        throw await explain(error)
      }
      next = await proceed()
    }
  }
}

function placeOf(entry: string): { readonly name: string; readonly piece: number } {
  if (entry === manifestName) return { name: manifestName, piece: 1 }
  const at = entry.lastIndexOf('/')
  const piece = entry.slice(at + 1)
  if (at < 1 || piece.length < 6 || piece.length > 12 || !isDigits(piece))
    throw new ArchiveError(`the archive holds an entry that is none of a backup: ${entry.slice(0, 100)}`)
  return { name: entry.slice(0, at), piece: Number(piece) }
}

const isDigits = (text: string): boolean => /^\d+$/.test(text)

/** Reads all of an archive and compares it with what its manifest says. */
export async function verifyArchive(archive: ArchiveFile): Promise<Manifest> {
  const seen = new Map<string, PartFacts>()
  let manifest: Manifest | undefined
  for await (const { name, bytes } of readParts(archive)) {
    if (manifest !== undefined) throw new ArchiveError('the archive goes on behind its manifest')
    if (name === manifestName) manifest = parseManifest(await textOf(bytes))
    else if (seen.has(name)) throw new ArchiveError(`the archive holds ${name} twice`)
    else seen.set(name, await factsOf(name, bytes))
  }
  if (manifest === undefined) throw new ArchiveError('the archive is not whole: its manifest is missing')
  const named = partsOfManifest(manifest)
  for (const part of named) {
    const fault = differs(part, seen.get(part.name))
    if (fault !== null) throw new ArchiveError(fault)
  }
  if (seen.size !== named.filter(({ bytes }) => bytes > 0).length)
    throw new ArchiveError('the archive holds parts that its manifest does not name')
  return manifest
}

/** Passes bytes on, and throws at their end unless they are those of the part. */
export async function* proven(part: PartFacts, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  for await (const chunk of bytes) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('hex') !== part.sha256)
    throw new ArchiveError(`${part.name} is not what it was when the archive was checked`)
}

const partsOfManifest = ({ tables, files, keys }: Manifest): PartFacts[] => [
  ...tables,
  ...files.flatMap(file => (file.kind === 'file' ? [file.part] : [])),
  ...(keys === null ? [] : [keys])
]

export async function bytesOf(bytes: AsyncIterable<Buffer>, most = longestManifest): Promise<Buffer> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of bytes) {
    total += chunk.length
    if (total > most) throw new ArchiveError('a part of the archive is longer than any that is written')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const textOf = async (bytes: AsyncIterable<Buffer>): Promise<string> =>
  (await bytesOf(bytes)).toString('utf8')

async function factsOf(name: string, bytes: AsyncIterable<Buffer>): Promise<PartFacts> {
  const hash = createHash('sha256')
  let total = 0
  for await (const chunk of bytes) {
    hash.update(chunk)
    total += chunk.length
  }
  return { name, bytes: total, pieces: 0, sha256: hash.digest('hex') }
}

function differs(part: PartFacts, seen: PartFacts | undefined): string | null {
  // A part without bytes has no entry.
  if (seen === undefined) return part.bytes === 0 ? null : `the archive is not whole: ${part.name} is missing`
  return seen.bytes === part.bytes && seen.sha256 === part.sha256
    ? null
    : `${part.name} of the archive is damaged: its checksum is another one`
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
