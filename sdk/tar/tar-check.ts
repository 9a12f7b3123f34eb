const blockLength = 512
/** Of one record that says more of the next file. */
const longestRecord = 2 ** 20

/** Why a tar is not taken, in a sentence. */
export class TarFault extends Error {
  override readonly name = 'TarFault'
}

/** What names in the tar of a volume begin with, see `ContainerRuntime.readVolume`. */
export const volumeFolder = 'volume'
const types = { hardLink: '1', symbolicLink: '2', characterDevice: '3', blockDevice: '4' } as const
const plain = ['0', '\0', '7', '5', '6', types.hardLink, types.symbolicLink]

/**
 * Looks at a tar while it passes by, and changes nothing of it: every name is below one folder, as is what a hard link names, and
 * nothing is a device. Throws a `TarFault` at the first entry that is another way; what was before it is fine.
 */
export class TarCheck {
  readonly #below: string
  readonly #header = Buffer.alloc(blockLength)
  #filled = 0
  #toSkip = 0
  #record: { readonly type: string; readonly pieces: Buffer[]; left: number } | undefined
  /** What records say of the next file. */
  #next: { size?: number; path?: string; link?: string } = {}
  #emptyBlocks = 0
  #files = 0

  constructor(below = volumeFolder) {
    this.#below = below
  }

  /** Files that were seen, without folders and links. */
  get files(): number {
    return this.#files
  }
  /** It has come to its end. */
  get isWhole(): boolean {
    return this.#emptyBlocks >= 2
  }

  read(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.isWhole; ) {
      if (this.#toSkip > 0) {
        const length = Math.min(this.#toSkip, piece.length - at)
        this.#keep(piece.subarray(at, at + length))
        this.#toSkip -= length
        if (this.#toSkip === 0) this.#endRecord()
        at += length
        continue
      }
      const length = Math.min(blockLength - this.#filled, piece.length - at)
      piece.copy(this.#header, this.#filled, at, at + length)
      this.#filled += length
      at += length
      if (this.#filled === blockLength) this.#readHeader()
    }
  }

  #readHeader(): void {
    this.#filled = 0
    const header = this.#header
    if (header.every(byte => byte === 0)) {
      this.#emptyBlocks++
      return
    }
    this.#emptyBlocks = 0
    const type = String.fromCharCode(header[156] ?? 0)
    const size = numberIn(header.subarray(124, 136))
    if (['x', 'g', 'L', 'K'].includes(type)) {
      if (size > longestRecord) throw new TarFault('a record of the archive is too long')
      this.#record = { type, pieces: [], left: size }
      this.#skip(size)
      return
    }
    const { path, link, size: recorded = size } = this.#next
    this.#next = {}
    this.#checkEntry(type, path ?? nameOf(header), link ?? textOf(header, 157, 100))
    const isFile = type === '0' || type === '\0' || type === '7'
    if (isFile) this.#files++
    this.#skip(isFile ? recorded : 0)
  }

  #checkEntry(type: string, path: string, link: string): void {
    if (!this.#has(path))
      throw new TarFault(`the archive names ${shown(path)}, which is not below ${this.#below}/`)
    if (type === types.characterDevice || type === types.blockDevice)
      throw new TarFault(`${shown(path)} is a device, which no backup takes`)
    if (!plain.includes(type)) throw new TarFault(`${shown(path)} is of an unknown kind`)
    if (type === types.hardLink && !this.#has(link))
      throw new TarFault(`${shown(path)} is a link to ${shown(link)}, which is not below ${this.#below}/`)
  }

  #has(path: string): boolean {
    const names = path.replace(/\/$/, '').split('/')
    return names[0] === this.#below && names.every(name => name !== '' && name !== '.' && name !== '..')
  }

  #skip(size: number): void {
    this.#toSkip = Math.ceil(size / blockLength) * blockLength
    if (this.#toSkip === 0) this.#endRecord()
  }

  #keep(piece: Buffer): void {
    const record = this.#record
    if (record === undefined || record.left === 0) return
    const kept = Buffer.from(piece.subarray(0, record.left))
    record.pieces.push(kept)
    record.left -= kept.length
  }

  #endRecord(): void {
    const record = this.#record
    if (record === undefined) return
    this.#record = undefined
    const content = Buffer.concat(record.pieces)
    if (record.type === 'L') this.#next.path = textOf(content, 0, content.length)
    else if (record.type === 'K') this.#next.link = textOf(content, 0, content.length)
    else {
      const found = recordsIn(content)
      // One for all files that follow: no engine writes names into it.
      if (record.type === 'g' && Object.keys(found).length > 0)
        throw new TarFault('the archive names what is the same of all files')
      Object.assign(this.#next, found)
    }
  }
}

const shown = (path: string): string => JSON.stringify(path.slice(0, 200))

const textOf = (buffer: Buffer, start: number, length: number): string => {
  const field = buffer.subarray(start, start + length)
  const end = field.indexOf(0)
  return field.toString('latin1', 0, end < 0 ? field.length : end)
}

function nameOf(header: Buffer): string {
  const name = textOf(header, 0, 100)
  // Only the newer form has a prefix there.
  const prefix = textOf(header, 257, 6) === 'ustar' ? textOf(header, 345, 155) : ''
  return prefix === '' ? name : `${prefix}/${name}`
}

/** In octal digits, or in base 256 where the first bit says so. */
function numberIn(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const value = field.subarray(1).reduce((sum, byte) => sum * 256 + byte, (field[0] ?? 0) & 0x7f)
    if (!Number.isSafeInteger(value)) throw new TarFault('a file of the archive has no size')
    return value
  }
  const digits = field.toString('latin1').replaceAll('\0', ' ').trim()
  if (digits !== '' && !/^[0-7]{1,12}$/.test(digits)) throw new TarFault('a file of the archive has no size')
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

/** Lines of `<length> <key>=<value>`, whose length counts itself. */
function recordsIn(record: Buffer): { size?: number; path?: string; link?: string } {
  const found: { size?: number; path?: string; link?: string } = {}
  for (let at = 0; at < record.length; ) {
    const space = record.indexOf(0x20, at)
    const digits = space < 0 || space - at > 10 ? '' : record.toString('latin1', at, space)
    const length = /^\d{1,10}$/.test(digits) ? Number(digits) : 0
    if (length <= space - at || at + length > record.length)
      throw new TarFault('a record of the archive has no length')
    const line = record.toString('latin1', space + 1, at + length - 1)
    const equals = line.indexOf('=')
    const [key, value] = [line.slice(0, equals), line.slice(equals + 1)]
    if (key === 'path') found.path = value
    else if (key === 'linkpath') found.link = value
    else if (key === 'size') {
      if (!/^\d{1,15}$/.test(value)) throw new TarFault('a file of the archive has no size')
      found.size = Number(value)
    }
    at += length
  }
  return found
}
