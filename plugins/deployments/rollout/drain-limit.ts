/** How long requests under way on a version that goes may take; it then has its own grace to stop. */
export const drainMs = 10_000

/** A drain is not waited for when the platform stops: rejects then. */
export async function orStopped<T>(
  work: Promise<T> | undefined,
  signal: AbortSignal
): Promise<T | undefined> {
  signal.throwIfAborted()
  const done = new AbortController()
  const stopped = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: done.signal })
  )
  try {
    return await Promise.race([work, stopped])
  } finally {
    done.abort()
  }
}
