/** Measuring makes the engine look at every file that containers have written: it may take this share of the time. */
const measuringShare = { near: 0.2, else: 0.02 }
/** But whoever makes it long must not make it rare: `losing`, while more goes. */
const longestMs = { losing: 2000, near: 10_000, else: 5 * 60_000 }
const losingBytes = 16 * 2 ** 20

/** How long to wait at least from one measuring to the next. */
export function pauseMs({
  tookMs,
  isNear,
  lostBytes
}: {
  /** The latest. */
  readonly tookMs: number
  readonly isNear: boolean
  /** Since then. */
  readonly lostBytes: number
}): number {
  const kind = isNear ? 'near' : 'else'
  const longest = longestMs[isNear && lostBytes >= losingBytes ? 'losing' : kind]
  return Math.min(longest, tookMs / measuringShare[kind])
}
