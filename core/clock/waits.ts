import { setTimeout as sleep } from 'node:timers/promises'

/** Sleeps, but not beyond the signal; never rejects. */
export const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted)
    await new Promise(resolve => {
      signal.addEventListener('abort', resolve, { once: true })
    })
}

/** Settles like `work`; what still goes on `graceMs` after the abort is abandoned, with the signal's reason. */
export async function withGraceAfterAbort<T>(
  work: Promise<T>,
  signal: AbortSignal,
  graceMs: number
): Promise<T> {
  const ended = new AbortController()
  const givenUp = new Promise<never>((_resolve, reject) => {
    const wait = (): void => {
      void pause(graceMs, ended.signal).then(() => {
        reject(signal.reason)
      })
    }
    if (signal.aborted) wait()
    else signal.addEventListener('abort', wait, { once: true, signal: ended.signal })
  })
  try {
    return await Promise.race([work, givenUp])
  } finally {
    ended.abort()
  }
}

/**
 * Settles like `work`, or rejects when it takes longer than `ms`: with an error that says `what` was late, or with what that
 * makes. The work itself cannot be stopped.
 */
export async function withDeadline<T>(
  work: Promise<T> | T,
  ms: number,
  what: string | (() => Error)
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(typeof what === 'string' ? new Error(`${what} took longer than ${ms / 1000} s`) : what())
    }, ms)
  })
  return await Promise.race([work, late]).finally(() => {
    clearTimeout(timer)
  })
}

/** Settles like `work`, and runs `act` when that takes longer than `ms`. */
export async function whenLate<T>(work: Promise<T>, ms: number, act: () => void): Promise<T> {
  const timer = setTimeout(act, ms)
  return await work.finally(() => {
    clearTimeout(timer)
  })
}
