import { type EngineDisk, mebibytes } from 'busbar/api/builds'

/** A dump that is restored takes about what it took before; some more is for logs that servers write meanwhile. */
const roomFactor = 1.2
const leastRoom = 128 * 2 ** 20

/**
 * Says that there is room for a copy of a volume beside it; throws where there is not, or where that cannot be told of a disk that is
 * seen. An engine on another machine shows no disk: there, who upgrades looks after it, as no upgrade would ever be made otherwise.
 */
export function checkRoom(
  usedBytes: number | null,
  disk: Pick<EngineDisk, 'freeBytes' | 'floorBytes'> | undefined
): string {
  if (disk === undefined)
    return 'how much room there is on the disk of the engine is not known from here: nothing is compared, and nothing watched'
  if (usedBytes === null)
    throw new Error(
      'how much the volume holds could not be measured, and so not whether a copy beside it has room: try again later'
    )
  const needed = Math.ceil(usedBytes * roomFactor) + leastRoom + disk.floorBytes
  if (disk.freeBytes < needed)
    throw new Error(
      `the disk of the engine has ${mebibytes(disk.freeBytes)} MiB free, and a copy beside the old volume takes ${mebibytes(needed)}`
    )
  return `${mebibytes(disk.freeBytes)} MiB are free, ${mebibytes(needed)} are needed`
}
