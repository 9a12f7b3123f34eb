/** How long `bounded` waits, until what, and for whom. */
export interface Bounds {
  readonly ms: number
  /** What aborts ends the wait at once, with its reason. */
  readonly signal?: AbortSignal | undefined
  /** For the error: `the hook of the plugin "quota"`. */
  readonly what: string
}

/**
 * Waits for code of another plugin, with a limit: settles like `work`, rejects with the signal's reason when that
 * aborts, and with an `Error` that names `what` after `ms`. The work itself goes on, without being waited for.
 * For every call into another plugin's contribution:
 *
 *     await bounded(() => value.refuses(application), { ms: 30_000, signal, what: `the deploy gate of the plugin "${plugin}"` })
 */
export async function bounded<T>(work: () => T | Promise<T>, { ms, signal, what }: Bounds): Promise<T> {
  signal?.throwIfAborted()
  let stop = (): void => {}
  const ended = new Promise<never>((_resolve, reject) => {
    const follow = (): void => {
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      reject(new Error(`${what} did not answer within ${ms / 1000} s`))
    }, ms)
    signal?.addEventListener('abort', follow)
    stop = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', follow)
    }
  })
  try {
    return await Promise.race([(async () => await work())(), ended])
  } finally {
    stop()
  }
}
