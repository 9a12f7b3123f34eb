import { createHash, type Hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import type { BackupStorage, Dump, DumpFacts } from '../api.js'

/** As fast as most engines write; a higher level takes twice as long for some percent. */
const gzipOptions = { level: 4, chunkSize: 64 * 1024 }
const gunzipOptions = { chunkSize: 128 * 1024 }

/** Programs write some KiB at a time, and each piece that is compressed goes to another thread and back. */
const joinedBytes = 256 * 1024

/** In pieces of one memory: each is used up when the next is asked for, as a compressor takes one after another. */
async function* joined(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const held = Buffer.allocUnsafeSlow(joinedBytes)
  let filled = 0
  for await (const chunk of source)
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.copy(held, filled, at)
      at += taken
      filled += taken
      if (filled < joinedBytes) continue
      yield held
      filled = 0
    }
  if (filled > 0) yield held.subarray(0, filled)
}

/** What a file is once it is stored. */
interface FileFacts extends DumpFacts {
  /** Before it was compressed. */
  readonly rawBytes: number
  readonly bytes: number
  readonly sha256: string
}

export interface StoredFile {
  readonly key: string
  readonly bytes: number
  readonly rawBytes: number
  readonly sha256: string
  /** What opens it; null where it is not encrypted. */
  readonly identity: string | null
}

/** The file is not what was written, or is not there. Nothing has been touched. */
export class DamagedFile extends Error {}

interface Step {
  readonly signal: AbortSignal
}

/** Stores a dump: compressed, encrypted, and only where it is whole. Holds some hundred KiB, and what the storage holds. */
export async function storeDump(
  storage: BackupStorage,
  {
    key,
    dump,
    recipients
  }: { readonly key: string; readonly dump: Dump; readonly recipients: readonly string[] },
  { signal }: Step
): Promise<FileFacts> {
  const { encrypting } = await import('busbar/sdk/age')
  const gzip = createGzip(gzipOptions)
  const compressed = pipeline(dump.content, joined, gzip, { signal })
  // Whoever reads gets the error.
  compressed.catch(() => {})
  const hash = createHash('sha256')
  let bytes = 0
  let facts: DumpFacts | undefined
  /** What has failed in the dump, which is no fault of the storage. */
  let fault: { readonly error: unknown } | undefined
  const proven = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of source) {
        hash.update(chunk)
        bytes += chunk.length
        yield chunk
      }
      await compressed
      // The storage waits for the end: it keeps nothing that fails here.
      facts = await dump.end()
    } catch (error) {
      fault = { error }
      throw error
    }
  }
  try {
    await storage.put(key, proven(encrypting(recipients)(gzip)), { signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : fault === undefined ? error : fault.error
  } finally {
    gzip.destroy()
    dump.content.destroy()
  }
  if (facts === undefined) throw new Error('the storage has not taken all of the dump')
  const stored = await storage.size(key, { signal })
  if (stored !== bytes)
    throw new Error(`the file is ${stored ?? 0} bytes long where it was stored, and should be ${bytes}`)
  return { ...facts, rawBytes: gzip.bytesWritten, bytes, sha256: hash.digest('hex') }
}

/** Reads all of a file and compares it with what was written. */
export async function verifyFile(storage: BackupStorage, file: StoredFile, { signal }: Step): Promise<void> {
  for await (const chunk of provenBytes(storage, file, signal)) {
    // Only whether it comes to its end is asked.
    void chunk
  }
}

/** The dump again, as it was written. */
interface OpenedFile {
  /** It fails where the file is not what was written, at its end at the latest. */
  readonly content: Readable
  /** What has failed in reading it, which is no fault of who reads. */
  fault(): unknown
}

export function openFile(storage: BackupStorage, file: StoredFile, { signal }: Step): OpenedFile {
  const gunzip = createGunzip(gunzipOptions)
  let fault: unknown
  const opened = async function* (): AsyncGenerator<Uint8Array> {
    try {
      const stored = provenBytes(storage, file, signal)
      if (file.identity === null) {
        yield* stored
        return
      }
      const { AgeError, decrypting } = await import('busbar/sdk/age')
      try {
        yield* decrypting(file.identity)(stored)
      } catch (error) {
        if (!(error instanceof AgeError) || error.reason !== 'damaged') throw error
        throw new DamagedFile(`the file ${file.key} is damaged: it cannot be decrypted any more`, {
          cause: error
        })
      }
    } catch (error) {
      // Who stops reading destroys it first, and that comes here as an error too.
      if (!gunzip.destroyed) fault = error
      throw error
    }
  }
  // Its errors are those of `gunzip`, which whoever reads it gets.
  pipeline(Readable.from(opened(), { objectMode: false, highWaterMark: 256 * 1024 }), gunzip, {
    signal
  }).catch(() => {})
  return { content: gunzip, fault: () => fault }
}

/** How often a destination that cuts off in the middle of a file is asked for the rest. */
const resumes = 5

async function* provenBytes(
  storage: BackupStorage,
  file: StoredFile,
  signal: AbortSignal
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let read = 0
  const size = await storage.size(file.key, { signal })
  if (size === null) throw new DamagedFile(`the file ${file.key} is not there any more`)
  if (size !== file.bytes) throw otherLength(size, file)
  for (let left = resumes; read < file.bytes; left--) {
    const before = read
    const chunks = pull(storage, file.key, { signal, from: read })
    try {
      for (;;) {
        // What is thrown at `yield` is of who reads, and nothing to ask for the rest for.
        const { chunk, error } = await chunks.next()
        if (error !== undefined) {
          if (signal.aborted) throw signal.reason
          if (left === 0 || read === before) throw error
          break
        }
        if (chunk === undefined) {
          if (read < file.bytes) throw otherLength(read, file)
          break
        }
        hash.update(chunk)
        read += chunk.length
        if (read > file.bytes) throw otherLength(read, file)
        yield chunk
      }
    } finally {
      await chunks.end()
    }
  }
  checkHash(hash, file)
}

interface Pulled {
  readonly chunk?: Buffer
  readonly error?: unknown
}

/** What a storage gives, one piece after another; neither is there at the end. */
function pull(
  storage: BackupStorage,
  key: string,
  options: { readonly signal: AbortSignal; readonly from: number }
): { next(): Promise<Pulled>; end(): Promise<void> } {
  let chunks: AsyncIterator<Buffer> | undefined
  return {
    next: async () => {
      try {
        chunks ??= (await storage.get(key, options))[Symbol.asyncIterator]()
        const next = await chunks.next()
        return next.done === true ? {} : { chunk: next.value }
      } catch (error) {
        return { error: error ?? new Error('the storage has failed') }
      }
    },
    end: async () => {
      await chunks?.return?.(undefined)
    }
  }
}

function checkHash(hash: Hash, { key, sha256 }: StoredFile): void {
  if (hash.digest('hex') !== sha256)
    throw new DamagedFile(`the file ${key} is damaged: its checksum is another one than when it was written`)
}

const otherLength = (length: number, { key, bytes }: StoredFile): DamagedFile =>
  new DamagedFile(`the file ${key} is damaged: it is ${length} bytes long and was written with ${bytes}`)
