import { createHash } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { encrypting } from 'busbar/sdk/age'
import { whileRoom } from 'busbar/sdk/disk'
import { pack as makePack, type Pack } from 'tar-stream'
import { ArchiveError, longestManifest, type Manifest, type PartFacts } from './manifest.js'

/** Of a file that is being written: nobody takes half of an archive for one. */
export const partialEnding = '.part'
export const manifestName = 'manifest.json'

/** A tar says how long an entry is before it comes; so what has an unknown length comes in pieces. */
const pieceBytes = 1024 * 1024
const gzipOptions = { level: 4, chunkSize: 64 * 1024 }
/** How the compressed bytes begin: with nothing that differs by machine, and that no checksum covers. */
export const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])
const privateMode = 0o600

interface WriteOptions {
  /** It has this name once it is whole and on disk. */
  readonly file: string
  /** Nothing is encrypted where there are none. */
  readonly recipients: readonly string[]
  readonly modifiedAt: Date
  readonly signal: AbortSignal
}

/** Adds a part; the bytes are taken as fast as they can be written, and a piece of them is held. */
export type AddPart = (name: string, bytes: AsyncIterable<Buffer>) => Promise<PartFacts>

/** Writes an archive of the parts that `fill` adds and of the manifest that it resolves with; how long it is, in bytes. */
export async function writeArchive(
  { file, recipients, modifiedAt, signal }: WriteOptions,
  fill: (add: AddPart) => Promise<Manifest>
): Promise<number> {
  const partial = `${file}${partialEnding}`
  const pack = makePack()
  const output = createWriteStream(partial, { mode: privateMode, flush: true })
  const written = writePack(pack, recipients, { output, folder: dirname(file) }, signal)
  const failure = written.then(
    () => new Promise<never>(() => {}),
    (error: unknown) => {
      throw error
    }
  )
  // It is raced against by each part.
  failure.catch(() => {})
  try {
    const entries = new Entries(pack, failure, modifiedAt)
    const manifest = await Promise.race([fill((name, bytes) => entries.add(name, bytes)), failure])
    const text = Buffer.from(`${JSON.stringify(manifest)}\n`)
    // Nobody could read it.
    if (text.length > longestManifest) throw tooManyFiles(manifest)
    await entries.put(manifestName, [text], text.length)
    pack.finalize()
    await written
    const { size } = await stat(partial)
    await rename(partial, file)
    await syncFolder(dirname(file))
    return size
  } catch (error) {
    pack.destroy()
    await written.catch(() => {})
    await rm(partial, { force: true })
    throw error
  }
}

const tooManyFiles = ({ files, catalog }: Manifest): ArchiveError =>
  new ArchiveError(
    `the list of what is in the archive (${files.length} files, ${catalog.tables.length} tables) is longer than the ${longestManifest / 2 ** 20} MiB that a restore reads: take files away below data/ and plugins/ of the data directory, such as what a package manager has left in folders of plugins`
  )

async function writePack(
  pack: Pack,
  recipients: readonly string[],
  { output, folder }: { readonly output: WriteStream; readonly folder: string },
  signal: AbortSignal
): Promise<void> {
  const room = (bytes: AsyncIterable<Uint8Array>) => whileRoom(bytes, folder, () => output.bytesWritten)
  const source = async function* (): AsyncGenerator<Buffer> {
    for await (const bytes of pack as AsyncIterable<Buffer>) yield bytes
  }
  const gzip = createGzip(gzipOptions)
  if (recipients.length === 0) await pipeline(source, gzip, withHead, room, output, { signal })
  else await pipeline(source, gzip, withHead, encrypting(recipients), room, output, { signal })
}

async function* withHead(compressed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true
  for await (const chunk of compressed) {
    yield isFirst ? Buffer.concat([gzipHead, chunk.subarray(gzipHead.length)]) : chunk
    isFirst = false
  }
}

class Entries {
  constructor(
    private readonly pack: Pack,
    private readonly failure: Promise<never>,
    private readonly mtime: Date
  ) {}

  async add(name: string, bytes: AsyncIterable<Buffer>): Promise<PartFacts> {
    const hash = createHash('sha256')
    let total = 0
    let pieces = 0
    let held: Buffer[] = []
    let heldBytes = 0
    const flush = async (): Promise<void> => {
      pieces++
      await this.put(`${name}/${String(pieces).padStart(6, '0')}`, held, heldBytes)
      held = []
      heldBytes = 0
    }
    for await (const chunk of bytes) {
      hash.update(chunk)
      total += chunk.length
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes >= pieceBytes) await flush()
    }
    if (heldBytes > 0) await flush()
    return { name, bytes: total, pieces, sha256: hash.digest('hex') }
  }

  async put(name: string, chunks: readonly Buffer[], size: number): Promise<void> {
    const header = { name, size, mode: privateMode, mtime: this.mtime }
    const taken = new Promise<void>(resolve => {
      const entry = this.pack.entry(header, error => {
        // Mostly it comes of the failure of the whole, which says why.
        if (error) this.pack.destroy(error)
        else resolve()
      })
      for (const chunk of chunks.slice(0, -1)) entry.write(chunk)
      entry.end(chunks.at(-1))
    })
    await Promise.race([taken, this.failure])
  }
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(async () => {
    await folder.close()
  })
}
