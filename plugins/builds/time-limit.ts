import type { Clock, Problem } from 'busbar/sdk'

/** Runs something that ends by `signal`, or by the problem when its time is up. */
export async function withTimeLimit<T>(
  {
    clock,
    signal,
    ms,
    problem
  }: {
    readonly clock: Clock
    readonly signal: AbortSignal
    readonly ms: number
    readonly problem: () => Problem
  },
  run: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const limit = new AbortController()
  const done = new AbortController()
  clock.sleep(ms, done.signal).then(
    () => limit.abort(problem()),
    () => undefined
  )
  try {
    return await run(AbortSignal.any([signal, limit.signal]))
  } finally {
    done.abort()
  }
}
