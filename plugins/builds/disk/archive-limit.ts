import { type Disk, shortDisk } from '../admission/admission-decision.js'
import { diskLimits } from '../settings.js'
import type { RoomMaker } from './room-maker.js'

/** How much the archives of one build may unpack to now; throws while a disk is short. */
export function archiveLimit(disks: readonly Disk[], config: Parameters<typeof diskLimits>[0]): number {
  const short = shortDisk({ disks }, config)
  if (short !== undefined) throw short
  const { floorBytes, buildBytes } = diskLimits(config)
  const free = Math.min(...disks.map(({ freeBytes }) => freeBytes))
  return Math.min(buildBytes, free - floorBytes)
}

/**
 * The same once unused data was removed, where the disks are what allows no more than `tooSmall`; without that, where one is
 * short.
 */
export async function roomyArchiveLimit(
  {
    disks,
    room,
    config
  }: {
    readonly disks: () => Promise<readonly Disk[]>
    readonly room: Pick<RoomMaker, 'make'>
    readonly config: Parameters<typeof diskLimits>[0]
  },
  tooSmall?: number
): Promise<number> {
  const isEnough =
    tooSmall === undefined
      ? shortDisk({ disks: await disks() }, config) === undefined
      : tooSmall >= diskLimits(config).buildBytes
  if (!isEnough) await room.make()
  return archiveLimit(await disks(), config)
}
