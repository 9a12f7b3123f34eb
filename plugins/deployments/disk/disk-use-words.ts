import type { DiskRoom, DiskUseLimits, DiskVerdict } from './disk-use-decision.js'

const places = 'its own file system and volumes that its image declares'

/** Why an application was stopped, for its author. */
export function reasonOf(
  { kind, of, use: { bytes, namelessBytes, inodes } }: DiskVerdict,
  limits: DiskUseLimits,
  room: DiskRoom | undefined
): string {
  const nameless =
    namelessBytes === 0 ? '' : `, ${mebibytes(namelessBytes)} of it in files that are open without a name`
  if (kind === 'stop') {
    const has =
      of === 'bytes'
        ? `it has written ${mebibytes(bytes)} to ${places}${nameless}, and ${mebibytes(limits.bytes)} are allowed`
        : `it has made ${inodes} files and directories in ${places}, and ${limits.inodes} are allowed`
    return `It was stopped: ${has}. Deployed again, it begins with nothing written; what it needs for longer belongs into a volume of its own.`
  }
  const free = room?.freeBytes ?? 0
  const was =
    of === 'bytes'
      ? `what it had written was removed, ${mebibytes(bytes)}${nameless}: ${mebibytes(free)} were left on the disk of all applications, and its project had taken most`
      : `what it had made was removed, ${inodes} files and directories: the disk of all applications had room for ${Math.floor(free / (room?.bytesPerInode ?? 1))} more, and its project had made most`
  return `It was stopped and ${was}. Deployed again, it begins with nothing written.`
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`
