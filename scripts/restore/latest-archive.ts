import { RestoreError } from '../../plugins/platform-backups/restore/restore-target.js'
import type { OwnArchives } from './own-archives.js'

/** An archive in the bucket. */
export interface FoundArchive {
  readonly key: string
  readonly name: string
  readonly bytes: number
  readonly at: Date
  /** Its tag; null where the name does not say it. */
  readonly installation: string | null
}

const choosing = 'Name the one that is meant: --remote <name>; "busbar restore --list" names all'

export const nameOf = (installation: string | null): string =>
  installation === null ? 'an installation that the name does not say' : `installation ${installation}`

export const isOwn = ({ key, installation }: FoundArchive, own: OwnArchives): boolean =>
  installation === null ? own.keys.has(key) : installation === own.installation

/**
 * The newest archive of the one installation that can be meant: that of the platform that is there, or else the only one that has
 * archives. Undefined where there is none. `all`: the newest first. Throws where it might be a stranger's.
 */
export function latestOf(
  all: readonly FoundArchive[],
  own: OwnArchives | undefined,
  prefix: string
): FoundArchive | undefined {
  if (own === undefined) {
    if (mayBeOfSeveral(all))
      throw new RestoreError(
        `there are archives of several installations below ${prefix} in the bucket, and which of them is to be restored is not known here: ${newestOfEach(all)}. ${choosing}`
      )
    return all[0]
  }
  const found = all.find(archive => isOwn(archive, own))
  if (found === undefined && all.length > 0)
    throw new RestoreError(
      `there is no archive of the installation that is here (${own.installation}) below ${prefix} in the bucket; there are others: ${newestOfEach(all)}. ${choosing}`
    )
  return found
}

/** What does not say whose it is may be of the same installation as the rest where it is older than all of that: of a former release. */
function mayBeOfSeveral(all: readonly FoundArchive[]): boolean {
  const named = all.filter(({ installation }) => installation !== null)
  const oldest = named.at(-1)
  if (oldest === undefined) return false
  return (
    named.some(({ installation }) => installation !== oldest.installation) ||
    all.some(({ installation, at }) => installation === null && at >= oldest.at)
  )
}

function newestOfEach(all: readonly FoundArchive[]): string {
  const newest = new Map<string | null, FoundArchive>()
  for (const archive of all) if (!newest.has(archive.installation)) newest.set(archive.installation, archive)
  return [...newest.values()]
    .map(({ installation, name }) => `${name}, the newest of ${nameOf(installation)}`)
    .join('; ')
}
