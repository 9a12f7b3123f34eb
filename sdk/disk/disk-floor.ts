import { statfs } from 'node:fs/promises'

const mebibyte = 1024 ** 2
const mostFloor = 1024 * mebibyte
const share = 20
/** Others write beside it meanwhile. */
const lookAgainBytes = 16 * mebibyte

/** What of a disk is left for what else is on it, in bytes: a twentieth of the disk, and no more than 1 GiB. */
export const floorOf = (diskBytes: number): number => Math.min(mostFloor, Math.floor(diskBytes / share))

/** Nothing more can be written to a disk without taking what is left free of it. The message is a part of a sentence, in MiB. */
export class ShortDisk extends Error {
  override readonly name = 'ShortDisk'

  constructor(folder: string, freeBytes: number, floorBytes: number) {
    const [free, floor] = [freeBytes, floorBytes].map(bytes => (bytes / mebibyte).toFixed(1))
    super(
      `the disk of ${folder} is full: ${free} MiB are free, and backups leave ${floor} MiB, as the database of the platform may be on it`
    )
  }
}

/**
 * Passes on what is to be written to a file, and throws a `ShortDisk` before a piece that would leave less of the disk than its floor, which
 * is the smaller of 1 GiB and a twentieth of it: who fills a disk takes the database of the platform along. The disk is looked at
 * again each 16 MiB, as others write to it too.
 *
 * @param content - the bytes, in pieces of any length.
 * @param folder - one on the disk that the file is written to. It has to be there, else what `statfs` throws is thrown.
 * @param written - how many bytes of what was passed on are in the file by now: the rest is still to come out of what is free.
 */
export async function* whileRoom<Piece extends Uint8Array>(
  content: AsyncIterable<Piece>,
  folder: string,
  written: () => number
): AsyncGenerator<Piece> {
  let passed = 0
  let allowed = 0
  for await (const piece of content) {
    if (piece.length > allowed) {
      const { bavail, blocks, bsize } = await statfs(folder)
      const [free, floor] = [bavail * bsize - (passed - written()), floorOf(blocks * bsize)]
      if (free - floor < piece.length) throw new ShortDisk(folder, free, floor)
      allowed = Math.min(free - floor, lookAgainBytes)
    }
    allowed -= piece.length
    passed += piece.length
    yield piece
  }
}
