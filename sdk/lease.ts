import type { Clock } from './kernel.js'

/**
 * A claim in a row of a table (a UUID, and until when it counts), for work that one process at a time is to do: one whose process was
 * killed is over by itself. `take` is one `update` that sets both where none counts at `now`.
 */
export interface Lease {
  /** `busy`: another holds it. `over`: there is no such work any more. */
  take(times: { readonly now: Date; readonly until: Date }): Promise<'taken' | 'busy' | 'over'>
  /** Where it is held by this one still. */
  prolong(until: Date): Promise<void>
  release(): Promise<void>
}

/** A process that stands still for that long counts as killed. */
export const leaseMs = 60_000
const prolongEveryMs = 15_000
const lookEveryMs = 500

/** Waits until it is this one's turn, or the abort; `over`: without a lease, as `work` is to find that there is nothing to do. */
export async function withLease<T>(
  lease: Lease,
  { clock, signal }: { readonly clock: Pick<Clock, 'now' | 'sleep' | 'every'>; readonly signal: AbortSignal },
  work: () => Promise<T>
): Promise<T> {
  const until = (): Date => new Date(clock.now().getTime() + leaseMs)
  for (;;) {
    const taken = await lease.take({ now: clock.now(), until: until() })
    if (taken === 'over') return await work()
    if (taken === 'taken') break
    await clock.sleep(lookEveryMs, signal)
  }
  const stopProlonging = prolongedLease(lease, clock)
  try {
    return await work()
  } finally {
    stopProlonging()
    // It is over by itself soon; what `work` has come to is not.
    await lease.release().catch(() => {})
  }
}

/** Prolongs one that is taken, until the function that it answers is called. */
export function prolongedLease(
  lease: Pick<Lease, 'prolong'>,
  clock: Pick<Clock, 'now' | 'every'>
): () => void {
  return clock.every(prolongEveryMs, async () => {
    // One that cannot be prolonged for so long ends; what it was for goes on to its end.
    await lease.prolong(new Date(clock.now().getTime() + leaseMs)).catch(() => {})
  })
}
