import { blockBytes, isTarHeader, sizeOf, typeOf } from './tar-header.js'

const sparseMark = /\d GNU\.sparse\.[a-z]+=/
/** The size of an entry, in place of the one in its header. */
const sizeMark = /\d size=/
/** Where a mark could lie across the end of a piece. */
const overlapBytes = 64

/**
 * Whether a tar says of files in it that they are sparse: with a type of entry of its own, or in a pax header. What
 * the files themselves hold is passed over, until something is met that readers understand in different ways: from
 * there on all of it is looked at.
 */
export class SparseSearch {
  #header: Buffer = Buffer.alloc(0)
  /** Of what follows the header. */
  #left = 0
  #isPax = false
  #isLost = false
  #end = ''
  #isFound = false

  get isFound(): boolean {
    return this.#isFound
  }

  push(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.#isFound; ) {
      const wanted = this.#left > 0 ? this.#left : blockBytes - this.#header.length
      const part = this.#isLost ? piece.subarray(at) : piece.subarray(at, at + wanted)
      at += part.length
      if (this.#isLost) this.#look(part)
      else if (this.#left > 0) {
        this.#left -= part.length
        if (this.#isPax) this.#readPax(part)
      } else {
        this.#header = Buffer.concat([this.#header, part])
        if (this.#header.length === blockBytes) this.#readHeader()
      }
    }
  }

  #readHeader(): void {
    const header = this.#header
    this.#header = Buffer.alloc(0)
    if (header.every(byte => byte === 0)) return
    const [type, size] = [typeOf(header), sizeOf(header)]
    // Links, directories and devices have nothing behind them, whatever their size; nor has an old entry that is a directory by its name.
    const isClear = isTarHeader(header) && size !== undefined && (size === 0 || !/[\x001-6]/.test(type))
    if (type === 'S') this.#isFound = true
    else if (!isClear) this.#lose(header)
    else {
      this.#left = Math.ceil(size / blockBytes) * blockBytes
      this.#isPax = type === 'x' || type === 'g'
      this.#end = ''
    }
  }

  #lose(rest: Buffer): void {
    this.#isLost = true
    this.#look(rest)
  }

  #readPax(part: Buffer): void {
    if (sizeMark.test(this.#end + part.toString('latin1'))) this.#isLost = true
    this.#look(part)
  }

  #look(part: Buffer): void {
    // Looked for as bytes first, which is much faster.
    if (
      this.#end.includes('GNU') ||
      part.includes('GNU.sparse') ||
      part.subarray(0, overlapBytes).includes('sparse')
    )
      this.#isFound ||= sparseMark.test(this.#end + part.toString('latin1'))
    this.#end = (this.#end + part.subarray(-overlapBytes).toString('latin1')).slice(-overlapBytes)
  }
}
