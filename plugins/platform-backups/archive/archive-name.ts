/** `busbar-backup-20261128T020000Z.tar.gz`, with `.age` behind it when it is encrypted. */
const pattern =
  /^busbar-(?:backup|before-restore)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.tar\.gz(?:\.age)?$/
const scheduled = /^busbar-backup-/

export function archiveName(
  at: Date,
  { encrypted, kind = 'backup' }: { readonly encrypted: boolean; readonly kind?: 'backup' | 'before-restore' }
): string {
  const stamp = `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  return `busbar-${kind}-${stamp}.tar.gz${encrypted ? '.age' : ''}`
}

/** When an archive of this name was begun; undefined for what is none of the platform's. */
export function archiveTime(name: string): Date | undefined {
  const found = pattern.exec(name)
  if (found === null) return undefined
  const [year = 0, month = 1, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1).map(Number)
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second))
}

/** Whether retention may ever remove it: what was kept before a restore is somebody's to remove. */
export const isScheduledArchive = (name: string): boolean =>
  scheduled.test(name) && archiveTime(name) !== undefined
