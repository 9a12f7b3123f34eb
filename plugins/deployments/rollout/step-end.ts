import type { Clock } from 'busbar/sdk'

/** So long a step may go on after its signal aborted: a build cleans up, and a command may need a while to end. */
const stepGraceMs = 2 * 60_000

interface StepEnd {
  readonly signal: AbortSignal
  readonly clock: Pick<Clock, 'sleep'>
  readonly graceMs?: number
  /** The step goes on, without being waited for. */
  onLeft(): void
}

/**
 * Settles like the work of a step. Steps end by their signal; one that does not, by a fault of ours or of what it waits for, must
 * not make a deployment impossible to cancel, nor hold its place in the queue for ever: a while after the signal this
 * rejects with its reason.
 */
export async function endOf<T>(
  work: Promise<T>,
  { signal, clock, graceMs = stepGraceMs, onLeft }: StepEnd
): Promise<T> {
  const over = new AbortController()
  return await new Promise<T>((resolve, reject) => {
    const leaveLater = (): void => {
      clock.sleep(graceMs, over.signal).then(
        () => {
          onLeft()
          reject(signal.reason)
        },
        () => {}
      )
    }
    if (signal.aborted) leaveLater()
    else signal.addEventListener('abort', leaveLater, { once: true, signal: over.signal })
    work.then(resolve, reject).finally(() => over.abort())
  })
}
