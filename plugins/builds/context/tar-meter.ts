import { blockBytes, isTarHeader, sizeOf, typeOf } from './tar-header.js'
import { directoryOf, isLongTarget, nameIn, TarDirectories, targetIn, untilNul } from './tar-names.js'

/** What the name and the inode of a file take, of whatever kind it is. */
const entryBytes = 512
/** What the size of a file is rounded up to, and what a directory takes, on the usual file systems. */
const clusterBytes = 4096
const hardLink = '1'
const symbolicLink = '2'
/** The second by its name only. */
const directory = /[5\0]/
const headerOnly = /[1-6]/
/** Names and records for the entry that follows. */
const extension = /[LKxg]/
/** More than the attributes of a file may be. */
const maxExtensionBytes = 128 * 1024
const maxRecords = 1000

/** Why it cannot be said what a tar takes. */
export type TarFault = 'sparse' | 'unclear'

/** What is in a tar takes so much of a disk. */
export interface Unpacked {
  readonly bytes: number
  readonly inodes: number
}

/**
 * What a tar takes on a disk once it is unpacked, read as it comes: its entries, the directories that these need, and all of
 * it that is no content, which the engine keeps beside a layer so that it can write the same tar again. It reads as Go does,
 * with which the engine unpacks, and says of what that may read otherwise that it cannot be told; so it does of sparse files,
 * which may be of any size.
 */
export class TarMeter {
  #bytes = 0
  /** What is no content of a file. */
  #kept = 0
  #inodes = 0
  #fault: TarFault | undefined
  #rest: Buffer = Buffer.alloc(0)
  /** Of what follows a header. */
  #skip = 0
  #words: Words | undefined
  /** In words before an entry: of it, instead of the one in its header. */
  #size: number | undefined
  /** The names of the entry that follows: which of them counts, readers may see differently. */
  #names: string[] = []
  /** The kinds of extensions that have come for the entry that follows. */
  #extensions = ''
  #zeroBlocks = 0
  readonly #directories = new TarDirectories()

  get unpacked(): Unpacked {
    // In letters, of which each holds six bits, and where a compression may have nothing to find.
    return { bytes: this.#bytes + Math.ceil((this.#kept * 4) / 3), inodes: this.#inodes }
  }

  get fault(): TarFault | undefined {
    return this.#fault
  }

  push(piece: Buffer): void {
    for (let at = 0; at < piece.length && this.#fault === undefined; ) {
      if (this.#zeroBlocks === 2) {
        this.#kept += piece.length - at
        return
      }
      if (this.#skip > 0) {
        const part = piece.subarray(at, at + this.#skip)
        at += part.length
        this.#skip -= part.length
        if (this.#words !== undefined) this.#takeWords(this.#words, part)
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
    else if (type === symbolicLink && isLongTarget(targetIn(header))) this.#fault = 'unclear'
    else this.#readEntry(type, headerOnly.test(type) ? 0 : (this.#size ?? told), nameIn(header))
  }

  #readEntry(type: string, size: number, name: string): void {
    // By its name it may be a directory, and a name can be said in three ways.
    if (type === '\0' && size > 0) this.#fault = 'unclear'
    const names = [name, ...this.#names]
    this.#names = []
    this.#size = undefined
    this.#extensions = ''
    this.#skip = padded(size)
    const isDirectory = directory.test(type)
    if (!isDirectory && type !== hardLink) this.#inodes++
    this.#kept += blockBytes + this.#skip - size
    if (!isDirectory) this.#bytes += entryBytes + Math.ceil(size / clusterBytes) * clusterBytes
    for (const one of names) this.#takeDirectory(isDirectory ? one : directoryOf(one))
  }

  #takeDirectory(path: string): void {
    const made = this.#directories.take(path)
    if (made === undefined) this.#fault = 'unclear'
    else {
      this.#inodes += made
      this.#bytes += made * (entryBytes + clusterBytes)
    }
  }

  #readExtension(type: string, size: number): void {
    // Records for all end those for one, and a second one of a kind takes the place of the first.
    const isRepeated = this.#extensions.includes(type) || (type === 'g' && this.#extensions !== '')
    if (size > maxExtensionBytes || isRepeated) this.#fault = 'unclear'
    if (type !== 'g') this.#extensions += type
    this.#skip = padded(size)
    this.#kept += blockBytes + this.#skip
    if (size > 0) this.#words = { type, size, parts: [], left: this.#skip }
  }

  #takeWords(words: Words, part: Buffer): void {
    words.parts.push(Buffer.from(part))
    words.left -= part.length
    if (words.left > 0) return
    this.#words = undefined
    const text = Buffer.concat(words.parts).subarray(0, words.size)
    if (words.type === 'L') this.#names.push(untilNul(text))
    else if (words.type === 'K') this.#takeTarget(untilNul(text))
    else this.#readRecords(words.type === 'g', paxRecords(text))
  }

  #takeTarget(target: string): void {
    if (isLongTarget(target)) this.#fault = 'unclear'
  }

  #readRecords(isGlobal: boolean, records: ReturnType<typeof paxRecords>): void {
    if (records === undefined) this.#fault = 'unclear'
    for (const [key, value] of records ?? [])
      if (key.startsWith('GNU.sparse')) this.#fault = 'sparse'
      else if (key === 'path') this.#names.push(value)
      else if (key === 'linkpath') this.#takeTarget(value)
      else if (key === 'size') {
        if (isGlobal || !/^\d{1,15}$/.test(value)) this.#fault ??= 'unclear'
        this.#size = Number(value)
      }
  }
}

/** What stands before an entry. */
interface Words {
  readonly type: string
  readonly size: number
  readonly parts: Buffer[]
  /** With what fills up its last block. */
  left: number
}

/** Of the form `length key=value\n`, in which the length counts itself; undefined where they are not. */
function paxRecords(text: Buffer): Array<readonly [key: string, value: string]> | undefined {
  const records: Array<readonly [string, string]> = []
  for (let at = 0; at < text.length; ) {
    if (records.length === maxRecords) return undefined
    const space = text.indexOf(' ', at)
    const length = space < 0 ? Number.NaN : Number(text.toString('latin1', at, space))
    const end = at + length
    const equals = text.indexOf('=', space)
    if (!Number.isInteger(length) || end <= space || end > text.length || text[end - 1] !== 0x0a)
      return undefined
    if (equals < 0 || equals >= end) return undefined
    records.push([
      text.toString('latin1', space + 1, Math.min(equals, space + 17)),
      text.toString('latin1', equals + 1, end - 1)
    ])
    at = end
  }
  return records
}

const padded = (size: number): number => Math.ceil(size / blockBytes) * blockBytes
