/** What can be followed: calls `give` with each value and `end` after the last; returns how to stop. */
type Follow<T> = (follower: { readonly give: (value: T) => void; readonly end: () => void }) => () => void

/**
 * The values as they come, for a reader at any pace: one that is slow gets the newest and none of those before, so that nothing
 * waits for it. Ends with the source, and at the abort.
 */
export async function* newest<T>(follow: Follow<T>, signal: AbortSignal): AsyncGenerator<T> {
  let waiting: { readonly value: T } | undefined
  let isOver = signal.aborted
  let wake = (): void => {}
  const end = (): void => {
    isOver = true
    wake()
  }
  const give = (value: T): void => {
    waiting = { value }
    wake()
  }
  const stop = follow({ give, end })
  signal.addEventListener('abort', end)
  try {
    while (!signal.aborted) {
      const next = waiting
      waiting = undefined
      if (next !== undefined) yield next.value
      else if (isOver) return
      else
        await new Promise<void>(resolve => {
          wake = resolve
        })
    }
  } finally {
    signal.removeEventListener('abort', end)
    stop()
  }
}
