/** What a signal may hold is bounded; more applications than these are all. */
const mostIds = 150

/** Tells every process that requests were stored, and for which applications. */
export const writtenSignal = {
  topic: 'written',
  write: (applicationIds: ReadonlySet<string | null>): string =>
    applicationIds.size > mostIds ? '*' : [...applicationIds].filter(id => id !== null).join(','),
  /** Null: for any. */
  read: (data: string): ReadonlySet<string> | null => (data === '*' ? null : new Set(data.split(',')))
} as const

/** Tells every process that an application is being removed, by its id. */
export const goneTopic = 'gone'
