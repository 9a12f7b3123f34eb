const nameLength = 100
const targetAt = 157
const magicAt = 257
const prefixAt = 345
const prefixLength = 155

/** The name in a header itself; words before it may say another. One character a byte. */
export function nameIn(header: Buffer): string {
  const name = untilNul(header.subarray(0, nameLength))
  if (header.toString('latin1', magicAt, magicAt + 5) !== 'ustar') return name
  const prefix = untilNul(header.subarray(prefixAt, prefixAt + prefixLength))
  return prefix === '' ? name : `${prefix}/${name}`
}

/** Where a link leads by its header itself. */
export const targetIn = (header: Buffer): string => untilNul(header.subarray(targetAt, targetAt + nameLength))

/**
 * More than any link has. Who unpacks follows links for each file that lies behind them, one upon another: with
 * thousands of parts in each, a file took longer than a megabyte of content.
 */
const maxTargetParts = 64

export const isLongTarget = (target: string): boolean =>
  target.split('/', maxTargetParts + 1).length > maxTargetParts

export function untilNul(bytes: Buffer): string {
  const end = bytes.indexOf(0)
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
}

/** More than any system takes for a path. */
const maxPathBytes = 4096
/** A file takes a look at each directory above it. */
const maxDepth = 256
/** More than any image has; this many take some 50 MB. */
const maxDirectories = 250_000

/**
 * The directories of a tar: those that are entries, and those that only names of entries speak of, which who unpacks makes as
 * well, hundreds for one long name. They are told apart by how they are written; one that is written in two ways counts twice.
 */
export class TarDirectories {
  /** By the number of the parent and the name in it, so that a long path is held once. */
  readonly #numbers = new Map<string, number>()
  /** Files of a directory come one after another. */
  #last = ''

  /** How many come with this one; undefined: more than there may be, or too deep to be made. */
  take(path: string): number | undefined {
    if (path === this.#last) return 0
    if (path.length > maxPathBytes) return undefined
    this.#last = path
    const before = this.#numbers.size
    const parts = path.split('/').filter(part => part !== '' && part !== '.')
    if (parts.length > maxDepth) return undefined
    let parent = 0
    for (const part of parts) {
      const key = `${parent}/${part}`
      const known = this.#numbers.get(key)
      parent = known ?? this.#numbers.size + 1
      if (known === undefined) this.#numbers.set(key, parent)
    }
    return this.#numbers.size > maxDirectories ? undefined : this.#numbers.size - before
  }
}

/** The directory that an entry is in. */
export const directoryOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
