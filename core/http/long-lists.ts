import { setImmediate as others } from 'node:timers/promises'

/** Some lists have no limit. Beyond this length they are written piece by piece, so that none holds the loop for long. */
const pieceLength = 100

export const isLong = (result: unknown): result is readonly unknown[] =>
  Array.isArray(result) && result.length > pieceLength

/** Characters of an answer. A plugin's mistake would fill the memory of everybody otherwise. */
const longestText = 2 ** 27

/**
 * The text of a list whose pieces `write` turns into text; other requests are served between two of them. Throws once nobody
 * wants it any more, and where it is beyond all reason.
 */
export async function writeInPieces(
  items: readonly unknown[],
  write: (piece: readonly unknown[]) => string,
  isWanted: () => boolean
): Promise<string> {
  const pieces: string[] = []
  let length = 0
  for (let at = 0; at < items.length; at += pieceLength) {
    if (at > 0) await others()
    if (!isWanted()) throw new Error('the client has gone while its answer was written')
    const piece = write(items.slice(at, at + pieceLength)).slice(1, -1)
    length += piece.length
    if (length > longestText)
      throw new Error(
        `the answer, a list of ${items.length}, is longer than ${longestText} characters: answer in pages, or with a download`
      )
    pieces.push(piece)
  }
  return `[${pieces.join(',')}]`
}
