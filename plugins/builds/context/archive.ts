import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { blockBytes, isTarHeader } from './tar-header.js'
import { type TarFault, TarMeter } from './tar-meter.js'

/** How a file is packed: `plain` is not, but may be a tar. */
export type Packing = 'gzip' | 'bzip2' | 'xz' | 'zstd' | 'plain'

const marks: ReadonlyArray<readonly [Packing, bytes: readonly number[]]> = [
  ['gzip', [0x1f, 0x8b]],
  ['bzip2', [0x42, 0x5a, 0x68]],
  ['xz', [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd]]
]
/** A frame that readers of zstd pass over: 0x184D2A50 to 5F. */
const skippable = /^[\x50-\x5f]\x2a\x4d\x18/

export async function packingOf(path: string): Promise<Packing> {
  const start = await firstBytes(path, 8)
  if (skippable.test(start.toString('latin1'))) return 'zstd'
  return marks.find(([, bytes]) => bytes.every((byte, index) => start[index] === byte))?.[0] ?? 'plain'
}

async function firstBytes(path: string, count: number): Promise<Buffer> {
  const file: FileHandle = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(count), 0, count, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

export interface Unpacked {
  /** What its entries take on a disk; not more than a little above the limit. */
  readonly bytes: number
  /** Why that is not all of it. */
  readonly fault: TarFault | undefined
}

/**
 * How large the tar in a file is, as far as `limit`; undefined when there is none. `packing` as the file is handed in:
 * what only programs unpack is packed as gzip before. Nothing is written.
 */
export async function measureTar(
  path: string,
  packing: 'gzip' | 'plain',
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal }
): Promise<Unpacked | undefined> {
  const file = createReadStream(path, { signal })
  const source: Readable = packing === 'gzip' ? file.pipe(createGunzip()) : file
  file.once('error', error => source.destroy(error))
  let head = Buffer.alloc(0)
  let bytes = 0
  const meter = new TarMeter()
  try {
    for await (const piece of source as AsyncIterable<Buffer>) {
      if (bytes < blockBytes) {
        head = Buffer.concat([head, piece.subarray(0, blockBytes - head.length)])
        if (head.length === blockBytes && !isTarHeader(head)) return undefined
      }
      bytes += piece.length
      meter.push(piece)
      if (bytes > limit || meter.unpacked.bytes > limit || meter.fault !== undefined) break
    }
  } finally {
    file.destroy()
    source.destroy()
  }
  return head.length === blockBytes && isTarHeader(head)
    ? { bytes: Math.max(bytes, meter.unpacked.bytes), fault: meter.fault }
    : undefined
}

/** A reader that goes no further, as all others do; what else zlib minds, others may pass over. */
const endsAllReaders =
  /unknown compression method|invalid block type|invalid stored block lengths|too many length or distance symbols|too far back|invalid (?:distance|literal\/length) code|unexpected end of file/
/** It may lose so many bytes that came right before a fault. */
const pieceBytes = 64

/** Whether a file only begins like gzip: every reader fails before it has got a header of a tar. */
export async function isNoGzip(path: string, signal: AbortSignal): Promise<boolean> {
  const file = createReadStream(path, { signal })
  const source = file.pipe(createGunzip({ chunkSize: pieceBytes }))
  file.once('error', error => source.destroy(error))
  let bytes = 0
  try {
    for await (const piece of source as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes + pieceBytes >= blockBytes) break
    }
    return false
  } catch (error) {
    signal.throwIfAborted()
    return endsAllReaders.test(String(error))
  } finally {
    file.destroy()
    source.destroy()
  }
}
