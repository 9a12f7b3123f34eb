import { type Disk, shortDisk } from '../admission/admission-decision.js'
import { diskLimits } from '../settings.js'

/** How much the archives of one build may unpack to now; throws while a disk is short. */
export function archiveLimit(disks: readonly Disk[], config: Parameters<typeof diskLimits>[0]): number {
  const short = shortDisk({ disks }, config)
  if (short !== undefined) throw short
  const { floorBytes, buildBytes } = diskLimits(config)
  const free = Math.min(...disks.map(({ freeBytes }) => freeBytes))
  return Math.min(buildBytes, free - floorBytes)
}
