const lineFeed = 0x0a
const carriageReturn = 0x0d
/**
 * Longer ones are no requests. A proxy may write each byte of a head as six characters: with less, whoever sends a long one would
 * be in no trace.
 */
export const longestLine = 448 * 1024

/** What a piece of a file holds. */
interface ReadLines {
  /** Without their ends. */
  readonly lines: readonly string[]
  /** Bytes of the piece that are done with. */
  readonly used: number
  /** Lines that are too long; one that goes on behind the piece counts where it begins. */
  readonly skipped: number
  /** What comes next is the rest of such a line. */
  readonly isMidLine: boolean
}

/**
 * The whole lines of a piece of a log, `most` at most. What is left is the beginning of a line, unless there are more; a line that is
 * longer than the longest is passed over, even where its end has not come. `isLast`: nothing follows, so that what is left is a line.
 */
export function readLines(
  piece: Buffer,
  {
    isMidLine,
    isLast,
    most
  }: { readonly isMidLine: boolean; readonly isLast: boolean; readonly most: number }
): ReadLines {
  const lines: string[] = []
  let skipped = 0
  let used = 0
  let isWithin = isMidLine
  while (used < piece.length && lines.length < most) {
    const found = piece.indexOf(lineFeed, used)
    const isWhole = found >= 0
    const end = isWhole ? found : piece.length
    const isTooLong = isWithin || end - used > longestLine
    if (!isWhole && !isTooLong && !isLast) break
    if (isTooLong) skipped += isWithin ? 0 : 1
    else if (end > used)
      lines.push(piece.toString('utf8', used, piece[end - 1] === carriageReturn ? end - 1 : end))
    isWithin = isTooLong && !isWhole
    used = isWhole ? end + 1 : end
  }
  return { lines, used, skipped, isMidLine: isWithin }
}
