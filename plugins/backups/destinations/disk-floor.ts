import { statfs } from 'node:fs/promises'

const mostFloor = 1024 ** 3
const share = 20
/** Others write beside it meanwhile. */
const lookAgainBytes = 16 * 1024 ** 2

/** What of a disk is left for what else is on it: a backup that takes all of it takes the database of the platform along. */
export const floorOf = (diskBytes: number): number => Math.min(mostFloor, Math.floor(diskBytes / share))

/** Bytes that backups may take there. */
async function roomIn(folder: string): Promise<number> {
  const { bavail, blocks, bsize } = await statfs(folder)
  return bavail * bsize - floorOf(blocks * bsize)
}

/** The disk has no more room than what is left free. */
export class ShortDisk extends Error {}

/** Passes on what is to be written to a file in `folder`, while there is room for it. `written`: how much of it has been. */
export async function* whileRoom(
  content: AsyncIterable<Buffer>,
  folder: string,
  written: () => number
): AsyncGenerator<Buffer> {
  let passed = 0
  let allowed = 0
  for await (const chunk of content) {
    if (chunk.length > allowed) {
      const room = (await roomIn(folder)) - (passed - written())
      if (room < chunk.length) throw new ShortDisk()
      allowed = Math.min(room, lookAgainBytes)
    }
    allowed -= chunk.length
    passed += chunk.length
    yield chunk
  }
}
