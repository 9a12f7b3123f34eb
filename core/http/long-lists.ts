import { setImmediate as others } from 'node:timers/promises'

/** Some lists have no limit. Beyond this length they are written piece by piece, so that none holds the loop for long. */
const pieceLength = 100

export const isLong = (result: unknown): result is readonly unknown[] =>
  Array.isArray(result) && result.length > pieceLength

/** The text of a list whose pieces `write` turns into text; other requests are served between two of them. */
export async function writeInPieces(
  items: readonly unknown[],
  write: (piece: readonly unknown[]) => string
): Promise<string> {
  const pieces: string[] = []
  for (let at = 0; at < items.length; at += pieceLength) {
    if (at > 0) await others()
    pieces.push(write(items.slice(at, at + pieceLength)).slice(1, -1))
  }
  return `[${pieces.join(',')}]`
}
