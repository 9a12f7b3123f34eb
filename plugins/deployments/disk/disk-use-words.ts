import type { DiskRoom, DiskUseLimits, DiskVerdict } from './disk-use-decision.js'

const places = 'its own file system and volumes that its image declares'

/** Of one that was restarted to see what comes back. Others may have given it back in that moment. */
export const backReason = (backBytes: number): string =>
  `It was restarted, as the disk of all applications was short: when its processes ended ${mebibytes(backBytes)} came back. Files that are open without a name take room until then; what it needs for longer belongs into a volume of its own.`

/** Why an application was stopped, for its author. */
export function reasonOf(
  verdict: Extract<DiskVerdict, { kind: 'stop' | 'remove' }>,
  limits: DiskUseLimits,
  room: Pick<DiskRoom, 'freeBytes' | 'bytesPerInode'> | undefined
): string {
  const { use } = verdict
  const hidden = use.namelessBytes
  const nameless = hidden === 0 ? '' : `, ${mebibytes(hidden)} of it in files that are open without a name`
  if (verdict.kind === 'stop')
    return `It was stopped: ${limitWords(verdict, limits, nameless)}. Deployed again, it begins with nothing written; what it needs for longer belongs into a volume of its own.`
  const isOfBytes = verdict.of === 'bytes'
  const free = room?.freeBytes ?? 0
  const was = isOfBytes
    ? `what it had written was removed, ${mebibytes(use.bytes)}${nameless}: ${mebibytes(free)} were left on the disk of all applications`
    : `what it had made was removed, ${use.inodes} files and directories: the disk of all applications had room for ${Math.floor(free / (room?.bytesPerInode ?? 1))} more`
  const all = isOfBytes
    ? mebibytes(verdict.held.all)
    : `${Math.round(verdict.held.all)} files and directories`
  return `It was stopped and ${was}, and ${holdingWords(verdict.held, all)}. Deployed again, it begins with nothing written.`
}

/** Why an image went that nothing ran from. */
export const releaseReason = (
  { image: { reference }, held }: Extract<DiskVerdict, { kind: 'release' }>,
  { freeBytes }: Pick<DiskRoom, 'freeBytes'>
): string =>
  `The image ${reference} was removed: ${mebibytes(freeBytes)} were left on the disk of all applications, and ${holdingWords(held, mebibytes(held.all))}. Nothing ran from it; this deployment cannot be rolled back to any more: deploy again instead.`

type OwnersHolding = Extract<DiskVerdict, { kind: 'release' }>['held']

function holdingWords({ inImages, inCaches, because }: OwnersHolding, all: string): string {
  const images =
    (inImages > 0 ? `, ${mebibytes(inImages)} of it in images` : '') +
    (inCaches > 0 ? `, ${mebibytes(inCaches)} of it in build engines` : '')
  const owned = 'all applications of the owner of its project together held'
  return because === 'most'
    ? `${owned} most of it, ${all}${images}`
    : `${owned} as good as most of it, ${all}${images}, and had taken more of it lately than others with as much`
}

function limitWords(
  { of, use: { bytes, names } }: Extract<DiskVerdict, { kind: 'stop' | 'remove' }>,
  limits: DiskUseLimits,
  nameless: string
): string {
  if (of === 'bytes')
    return `it has written ${mebibytes(bytes)} to ${places}${nameless}, and ${mebibytes(limits.bytes)} are allowed`
  const made = of === 'time' ? `more than ${names}` : String(names)
  const besides = of === 'time' ? 'so many that they could not be counted in time' : 'hard links too'
  return `it has made ${made} files and directories in ${places} (${besides}), and ${limits.inodes} are allowed`
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`
