/** Up to where an access log was read. */
export interface FilePlace {
  /** The number of the file; empty before any was read. */
  readonly inode: string
  /** Bytes of it. */
  readonly place: number
  /** The place is within a line that is too long to be one: what is left of it is passed over. */
  readonly isMidLine: boolean
  /** A digest of so many bytes of its beginning, by which it is told from another file that got its number. */
  readonly headLength: number
  readonly headDigest: string
  /** When it was written last, as nanoseconds since 1970. */
  readonly changedNs: string
}

/** The beginning of a file of which nothing was read. */
export const beginningOf = (inode: string, changedNs: string): FilePlace => ({
  inode,
  place: 0,
  isMidLine: false,
  headLength: 0,
  headDigest: '',
  changedNs
})
