import type { Clock } from './kernel.js'

/** How long work may take, and what ends it earlier. */
export interface TimeLimit {
  /** Ends the work as well. */
  readonly signal?: AbortSignal | undefined
  /** From the call of `withTimeLimit` on. */
  readonly ms: number
  /** What the signal of the work says when the time is up. Default: an `Error` that names the limit. */
  readonly reason?: () => unknown
  /** Default: the time of the machine. */
  readonly clock?: Pick<Clock, 'sleep'>
}

/**
 * Runs what ends by its signal, and settles like it: the signal aborts with the one given, or when the time is up.
 *
 * Instead of `AbortSignal.timeout`, which `AbortSignal.any` holds weakly: the next garbage collection takes its timer
 * along, and there is no limit any more. This timer stays until the work ends. Nothing stays after that: a signal that
 * lives long keeps a little of each `AbortSignal.any` upon it.
 */
export async function withTimeLimit<T>(
  { signal, ms, reason = () => new Error(`it took longer than ${ms / 1000} s`), clock }: TimeLimit,
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const end = new AbortController()
  const follow = (): void => end.abort(signal?.reason)
  const stop = after(ms, () => end.abort(reason()), clock)
  if (signal?.aborted === true) follow()
  else signal?.addEventListener('abort', follow, { once: true })
  try {
    return await run(end.signal)
  } finally {
    stop()
    signal?.removeEventListener('abort', follow)
  }
}

function after(ms: number, act: () => void, clock: Pick<Clock, 'sleep'> | undefined): () => void {
  if (clock === undefined) {
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  }
  const done = new AbortController()
  clock.sleep(ms, done.signal).then(act, () => {})
  // Nobody sees it, and without one an exception with its stack is made.
  return () => done.abort(null)
}
