/** What a signal may hold is bounded; more users than these are everybody. */
const mostUsers = 150

/** Tells every process whose inbox has something new. */
export const toldSignal = {
  topic: 'told',
  write: (userIds: readonly string[]): string => (userIds.length > mostUsers ? '' : userIds.join(',')),
  /** Null: of everybody. */
  read: (data: string): ReadonlySet<string> | null => (data === '' ? null : new Set(data.split(',')))
} as const
