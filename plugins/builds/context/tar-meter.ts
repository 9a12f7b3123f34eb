import { blockBytes, isTarHeader, sizeOf, typeOf } from './tar-header.js'

/** What a file takes at least, and what its size is rounded up to, on the usual file systems. */
const clusterBytes = 4096
/** No reader takes more of a header in words. */
const maxWordsBytes = 2 ** 20
const headerOnly = /[1-6]/
/** Names and records for the entry that follows. */
const extension = /[LKxg]/

/** Why it cannot be said what a tar takes. */
export type TarFault = 'sparse' | 'unclear'

/**
 * What the entries of a tar take on a disk once they are unpacked, read as it comes. It reads as Go does, with which the
 * engine unpacks, and says of what that may read otherwise that it cannot be told; so it does of sparse files, which may be
 * of any size.
 */
export class TarMeter {
  #bytes = 0
  #fault: TarFault | undefined
  #rest: Buffer = Buffer.alloc(0)
  /** Of what follows a header. */
  #skip = 0
  #pax: PaxHeader | undefined
  /** In words before an entry: of it, instead of the one in its header. */
  #size: number | undefined
  #isExtended = false
  #zeroBlocks = 0

  get bytes(): number {
    return this.#bytes
  }

  get fault(): TarFault | undefined {
    return this.#fault
  }

  push(piece: Buffer): void {
    for (let at = 0; at < piece.length && this.#fault === undefined && this.#zeroBlocks < 2; ) {
      if (this.#skip > 0) {
        const part = piece.subarray(at, at + this.#skip)
        at += part.length
        this.#skip -= part.length
        if (this.#pax !== undefined) this.#takePax(this.#pax, part)
        continue
      }
      const part = piece.subarray(at, at + blockBytes - this.#rest.length)
      at += part.length
      this.#rest = this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part])
      if (this.#rest.length < blockBytes) continue
      const header = this.#rest
      this.#rest = Buffer.alloc(0)
      this.#readHeader(header)
    }
    // The piece is not ours to keep.
    if (this.#rest.length > 0) this.#rest = Buffer.from(this.#rest)
  }

  #readHeader(header: Buffer): void {
    if (header.every(byte => byte === 0)) {
      this.#zeroBlocks++
      return
    }
    const [type, told] = [typeOf(header), sizeOf(header)]
    if (type === 'S') this.#fault = 'sparse'
    else if (this.#zeroBlocks > 0 || told === undefined || !isTarHeader(header)) this.#fault = 'unclear'
    else if (extension.test(type)) this.#readExtension(type, told)
    else this.#readEntry(header, type, headerOnly.test(type) ? 0 : (this.#size ?? told))
  }

  #readEntry(header: Buffer, type: string, size: number): void {
    // Whether an entry of an old kind is a directory is told by its name.
    if (type === '\0' && size > 0 && (this.#isExtended || isNamedDirectory(header))) this.#fault = 'unclear'
    this.#size = undefined
    this.#isExtended = false
    this.#skip = padded(size)
    this.#bytes += clusterBytes + Math.ceil(size / clusterBytes) * clusterBytes
  }

  #readExtension(type: string, size: number): void {
    if (size > maxWordsBytes) this.#fault = 'unclear'
    this.#isExtended = true
    this.#skip = padded(size)
    if (size > 0 && (type === 'x' || type === 'g'))
      this.#pax = { isGlobal: type === 'g', size, parts: [], left: this.#skip }
  }

  #takePax(pax: PaxHeader, part: Buffer): void {
    pax.parts.push(Buffer.from(part))
    pax.left -= part.length
    if (pax.left > 0) return
    this.#pax = undefined
    const records = paxRecords(Buffer.concat(pax.parts).subarray(0, pax.size))
    if (records === undefined) this.#fault = 'unclear'
    for (const [key, value] of records ?? [])
      if (key.startsWith('GNU.sparse')) this.#fault = 'sparse'
      else if (key === 'size') {
        if (pax.isGlobal || !/^\d{1,15}$/.test(value)) this.#fault ??= 'unclear'
        this.#size = Number(value)
      }
  }
}

interface PaxHeader {
  readonly isGlobal: boolean
  readonly size: number
  readonly parts: Buffer[]
  /** With what fills up its last block. */
  left: number
}

/** Of the form `length key=value\n`, in which the length counts itself; undefined where they are not. */
function paxRecords(text: Buffer): Array<readonly [key: string, value: string]> | undefined {
  const records: Array<readonly [string, string]> = []
  for (let at = 0; at < text.length; ) {
    const space = text.indexOf(' ', at)
    const length = space < 0 ? Number.NaN : Number(text.toString('latin1', at, space))
    const end = at + length
    const equals = text.indexOf('=', space)
    if (!Number.isInteger(length) || end <= space || end > text.length || text[end - 1] !== 0x0a)
      return undefined
    if (equals < 0 || equals >= end) return undefined
    records.push([
      text.toString('latin1', space + 1, equals),
      text.toString('latin1', equals + 1, Math.min(end - 1, equals + 17))
    ])
    at = end
  }
  return records
}

const padded = (size: number): number => Math.ceil(size / blockBytes) * blockBytes

const isNamedDirectory = (header: Buffer): boolean =>
  header.toString('latin1', 0, 100).replace(/\0.*$/s, '').endsWith('/')
