import { statfs } from 'node:fs/promises'

const mebibyte = 1024 * 1024
const mostFloor = 1024 * mebibyte
const floorShare = 0.05
const longestStep = 16 * mebibyte
const shortestStep = 256 * 1024

interface Disk {
  /** All of it. */
  readonly bytes: number
  readonly free: number
}

/** What an archive leaves of a disk: the database of the platform is on it as well, and stops where nothing is free. */
export const floorOf = ({ bytes }: Pick<Disk, 'bytes'>): number => Math.min(mostFloor, bytes * floorShare)

/** How many bytes are written before the disk is looked at again: others write to it too. */
export const nextLook = (disk: Disk): number =>
  Math.min(longestStep, Math.max(shortestStep, (disk.free - floorOf(disk)) / 2))

/** It would not leave of the disk what the platform needs. */
export class ShortDiskError extends Error {
  constructor(folder: string, { bytes, free }: Disk) {
    const [left, floor] = [free, floorOf({ bytes })].map(one => (one / mebibyte).toFixed(1))
    super(
      `the disk of ${folder} is full: ${left} MiB are free, and backups leave ${floor} MiB, as the database of the platform may be on it`
    )
  }
}

/** For `pipeline`: passes bytes on while that leaves enough of the disk that `folder` is on. */
export const leavingRoom = (folder: string) =>
  async function* (source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let unlooked = await look(folder)
    for await (const chunk of source) {
      yield chunk
      unlooked -= chunk.length
      if (unlooked <= 0) unlooked = await look(folder)
    }
  }

async function look(folder: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(folder)
  const disk = { bytes: blocks * bsize, free: bavail * bsize }
  if (disk.free < floorOf(disk)) throw new ShortDiskError(folder, disk)
  return nextLook(disk)
}
