import { isProblem, type Log } from 'busbar/sdk'
import { withGraceAfterAbort } from '../clock/waits.js'
import type { RecordedJob } from './recorded-job.js'

/** One run of a job. */
export interface Execution {
  readonly plugin: string
  readonly job: RecordedJob
  /** Rejects when the attempt has failed, with `Interrupted` when it was cut off. */
  readonly result: Promise<void>
  /** Aborts it because its plugin or the process stops. */
  interrupt(reason: Error): void
}

interface Attempt {
  readonly id: string
  readonly number: number
  readonly of: number
}

/** How long work may take to end once its signal has aborted. */
export const graceMs = 10_000
const longestTimerMs = 2 ** 31 - 1

/** Thrown when a run was cut off and the job is to run again as if nothing had happened. */
export class Interrupted extends Error {}

export function execute(
  plugin: string,
  job: RecordedJob,
  payload: unknown,
  attempt: Attempt,
  log: Log
): Execution {
  const controller = new AbortController()
  const { signal } = controller
  const late = new Error(`the job ${plugin}:${job.name} did not end within ${job.timeoutMs / 1000} seconds`)
  const timer = setTimeout(
    () => {
      controller.abort(late)
    },
    Math.min(job.timeoutMs, longestTimerMs)
  )
  return {
    plugin,
    job,
    result: run(),
    interrupt: reason => {
      controller.abort(reason)
    }
  }

  async function run(): Promise<void> {
    const fields = { plugin, job: job.name, jobId: attempt.id, attempt: attempt.number }
    const startedAt = performance.now()
    try {
      await withGraceAfterAbort(
        job.run(payload, { jobId: attempt.id, attempt: attempt.number, signal }),
        signal,
        graceMs
      )
      if (signal.reason === late) throw late
      log.debug({ ...fields, durationMs: Math.round(performance.now() - startedAt) }, 'job done')
    } catch (error) {
      const isCutOff = signal.aborted && signal.reason !== late
      if (isCutOff && attempt.of > 1) {
        log.info(fields, 'job interrupted; it runs again')
        throw new Interrupted(`interrupted: ${String(signal.reason.message)}`)
      }
      const failure = signal.reason === late ? late : error
      if (attempt.number < attempt.of) log.warn({ ...fields, err: failure }, 'job failed; it is tried again')
      else log.error({ ...fields, err: failure }, 'job failed for the last time')
      // A problem's code is stored beside the job: it helps when the job is looked at later.
      throw isProblem(failure)
        ? new Error(`${failure.message} (${failure.code})`, { cause: failure })
        : failure
    } finally {
      clearTimeout(timer)
    }
  }
}
