interface TickSource {
  /** Milliseconds since some moment; only differences count. */
  elapsed(): number
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/**
 * Calls `run` on a grid of `ms`, never two at a time: where a run takes longer, the points of the grid
 * that it missed are left out. An error of `run` goes to `onError`; the next run comes all the same.
 */
export function repeat(
  source: TickSource,
  ms: number,
  run: () => void | Promise<void>,
  onError: (error: unknown) => void
): () => void {
  if (!(ms > 0)) throw new RangeError(`an interval must be more than 0 ms, not ${ms}`)
  const stopped = new AbortController()
  const loop = async () => {
    for (let due = source.elapsed() + ms; !stopped.signal.aborted; due += ms) {
      if (due < source.elapsed()) due += Math.ceil((source.elapsed() - due) / ms) * ms
      try {
        await source.sleep(due - source.elapsed(), stopped.signal)
      } catch {
        return // stopped
      }
      try {
        await run()
      } catch (error) {
        onError(error)
      }
    }
  }
  void loop()
  return () => stopped.abort()
}
