import { type Clock, withTimeLimit } from 'busbar/sdk'

const minuteMs = 60_000
/** As `run_limit_minutes` says; more is none. */
export const mostMinutes = 7 * 24 * 60
/** Of the job: what is put back behind a run has its time too, and a job that is late is nothing that its record would know of. */
export const jobLimitMs = (mostMinutes + 60) * minuteMs
/** What does not end by its signal is not waited for any longer. */
const graceMs = 10_000

interface RunLimit {
  readonly clock: Clock
  readonly minutes: number
  /** Of the job. */
  readonly signal: AbortSignal
  /** Of a run that nobody wants any more. */
  readonly unwanted: AbortSignal
}

/**
 * The work of a run, which fails where it takes too long. What hangs would hang again, and what it is a run of can do nothing else
 * meanwhile: unlike a stop of the platform, this is no reason to begin again.
 */
export async function withRunLimit<T>(
  { clock, minutes, signal, unwanted }: RunLimit,
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const reason = (): Error =>
    new Error(`it took longer than the ${minutes} minutes that it may (run_limit_minutes)`)
  const ends = AbortSignal.any([signal, unwanted])
  return await withTimeLimit({ ms: minutes * minuteMs, signal: ends, clock, reason }, async limited => {
    let timer: NodeJS.Timeout | undefined
    const abandoned = new Promise<never>((_resolve, reject) => {
      limited.addEventListener(
        'abort',
        () => {
          if (!signal.aborted) timer = setTimeout(() => reject(limited.reason), graceMs)
        },
        { once: true }
      )
    })
    return await Promise.race([work(limited), abandoned]).finally(() => clearTimeout(timer))
  })
}
