const blockLength = 512
/** Of one record that says more of the next file; longer ones are none of the engine's. */
const longestRecord = 1024 * 1024

/**
 * Whether a tar that comes in pieces is whole: each file with all of its bytes, and after the last one the mark of the
 * end, which only a tar has that was finished.
 */
export class TarEnd {
  readonly #header = Buffer.alloc(blockLength)
  #filled = 0
  /** Bytes until the next header. */
  #toSkip = 0
  /** Of the next file, where a record before it says so: its header has no room for a size of 8 GiB. */
  #size: number | undefined
  #record: Buffer[] | undefined
  #recordLeft = 0
  #emptyBlocks = 0

  get isReached(): boolean {
    return this.#emptyBlocks >= 2
  }

  /** Throws where it is no tar. */
  read(piece: Buffer): void {
    let at = 0
    while (at < piece.length && !this.isReached) {
      if (this.#toSkip > 0) {
        const length = Math.min(this.#toSkip, piece.length - at)
        this.#keepRecord(piece.subarray(at, at + length))
        this.#toSkip -= length
        if (this.#toSkip === 0) this.#endRecord()
        at += length
      } else {
        const length = Math.min(blockLength - this.#filled, piece.length - at)
        piece.copy(this.#header, this.#filled, at, at + length)
        this.#filled += length
        at += length
        if (this.#filled === blockLength) this.#readHeader()
      }
    }
  }

  #readHeader(): void {
    this.#filled = 0
    if (this.#header.every(byte => byte === 0)) {
      this.#emptyBlocks++
      return
    }
    this.#emptyBlocks = 0
    const type = String.fromCharCode(this.#header[156] ?? 0)
    const declared = numberIn(this.#header.subarray(124, 136))
    if (type === 'x') {
      if (declared > longestRecord) throw new Error('a record of a tar is too long')
      this.#record = []
      this.#recordLeft = declared
    }
    // Records of other kinds come between the size and its file.
    const isRecord = ['x', 'g', 'L', 'K'].includes(type)
    // Links, devices and folders have nothing behind them, whatever size they tell.
    const size = isRecord
      ? declared
      : ['1', '2', '3', '4', '5', '6'].includes(type)
        ? 0
        : (this.#size ?? declared)
    if (!isRecord) this.#size = undefined
    this.#toSkip = Math.ceil(size / blockLength) * blockLength
    if (this.#toSkip === 0) this.#record = undefined
  }

  #keepRecord(piece: Buffer): void {
    if (this.#record === undefined || this.#recordLeft === 0) return
    const kept = Buffer.from(piece.subarray(0, this.#recordLeft))
    this.#record.push(kept)
    this.#recordLeft -= kept.length
  }

  #endRecord(): void {
    if (this.#record === undefined) return
    const size = sizeIn(Buffer.concat(this.#record))
    this.#record = undefined
    if (size !== undefined) this.#size = size
  }
}

/** In octal digits, or in base 256 where the first bit says so. */
function numberIn(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, (field[0] ?? 0) & 0x7f)
    if (!Number.isSafeInteger(value)) throw new Error('a tar names no size')
    return value
  }
  const digits = field.toString('latin1').replaceAll('\0', ' ').trim()
  if (digits !== '' && !/^[0-7]{1,12}$/.test(digits)) throw new Error('a tar names no size')
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

/** Lines of `<length> <key>=<value>`, whose length counts itself. */
function sizeIn(record: Buffer): number | undefined {
  let size: number | undefined
  for (let at = 0; at < record.length; ) {
    const space = record.indexOf(0x20, at)
    const digits = space < 0 || space - at > 10 ? '' : record.toString('latin1', at, space)
    const length = /^\d{1,10}$/.test(digits) ? Number(digits) : 0
    if (length <= space - at || at + length > record.length)
      throw new Error('a record of a tar has no length')
    const [key, value = ''] = record.toString('latin1', space + 1, at + length - 1).split('=', 2)
    if (key === 'size') {
      if (!/^\d{1,15}$/.test(value)) throw new Error('a tar names no size')
      size = Number(value)
    }
    at += length
  }
  return size
}
