/**
 * `busbar-backup-20261128T020000Z-1a2b3c4d-9f8e7d6c.tar.gz`: when, of which installation, and of which run; with `.age` behind it when
 * it is encrypted. Names of former releases, and of what is kept before a restore, say when alone.
 */
const pattern =
  /^busbar-(backup|before-restore)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-([\da-f]{8})(?:-[\da-f]{8}))?\.tar\.gz(?:\.age)?$/
const digits = 8

interface NamedArchive {
  /** When it was begun. */
  readonly at: Date
  /** The tag of the installation; null where the name does not say it. */
  readonly installation: string | null
  /** Whether retention may ever remove it: what was kept before a restore is somebody's to remove. */
  readonly isScheduled: boolean
}

/** What stands for an installation, or for a run, in names. `id`: a UUID. */
export const tagOf = (id: string): string => id.slice(0, digits)

export function archiveName(
  at: Date,
  {
    encrypted,
    of,
    kind = 'backup'
  }: {
    readonly encrypted: boolean
    /** UUIDs. Both are in the name, so that no two runs of any installations have one name. */
    readonly of?: { readonly installation: string; readonly run: string }
    readonly kind?: 'backup' | 'before-restore'
  }
): string {
  const stamp = `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const tags = of === undefined ? '' : `-${tagOf(of.installation)}-${tagOf(of.run)}`
  return `busbar-${kind}-${stamp}${tags}.tar.gz${encrypted ? '.age' : ''}`
}

/** What the name of an archive says; undefined for what is none of a platform's. */
export function readArchiveName(name: string): NamedArchive | undefined {
  const found = pattern.exec(name)
  if (found === null) return undefined
  const [year = 0, month = 1, day = 0, hour = 0, minute = 0, second = 0] = found.slice(2, 8).map(Number)
  return {
    at: new Date(Date.UTC(year, month - 1, day, hour, minute, second)),
    installation: found[8] ?? null,
    isScheduled: found[1] === 'backup'
  }
}
