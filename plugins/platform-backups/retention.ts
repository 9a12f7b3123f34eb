import { readArchiveName } from './archive/archive-name.js'

export interface Retention {
  /** Older ones go, beyond `count`. */
  readonly days: number
  /** So many of the newest are kept, however old they are. */
  readonly count: number
}

/** Whose archives retention is about. */
interface Owner {
  /** The tag of the installation. */
  readonly installation: string
  /** Whether an archive is its own whose name does not say whose it is. */
  readonly isFormerOwn: (name: string) => boolean
}

const dayMs = 86_400_000

/**
 * Which of these archives have had their time. What has another name than the platform gives, or is of another installation, is none of
 * its, and is not counted either.
 */
export function expired(
  names: readonly string[],
  { days, count }: Retention,
  now: Date,
  { installation, isFormerOwn }: Owner
): string[] {
  const before = now.getTime() - days * dayMs
  return names
    .flatMap(name => {
      const read = readArchiveName(name)
      if (read?.isScheduled !== true) return []
      const isOwn = read.installation === null ? isFormerOwn(name) : read.installation === installation
      return isOwn ? [{ name, at: read.at.getTime() }] : []
    })
    .sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1))
    .slice(count)
    .filter(({ at }) => at < before)
    .map(({ name }) => name)
}
