import { archiveTime, isScheduledArchive } from './archive/archive-name.js'

export interface Retention {
  /** Older ones go, beyond `count`. */
  readonly days: number
  /** So many of the newest are kept, however old they are. */
  readonly count: number
}

const dayMs = 86_400_000

/** Which of these archives have had their time. What has another name than the platform gives is none of its. */
export function expired(names: readonly string[], { days, count }: Retention, now: Date): string[] {
  const before = now.getTime() - days * dayMs
  return names
    .filter(isScheduledArchive)
    .map(name => ({ name, at: archiveTime(name)?.getTime() ?? 0 }))
    .sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1))
    .slice(count)
    .filter(({ at }) => at < before)
    .map(({ name }) => name)
}
