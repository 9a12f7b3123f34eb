import type { JobContext } from 'busbar/sdk'
import type { Test } from 'tap'
import type { Postgres } from '../../core/database/postgres.js'
import { JobRunner, type JobsOptions, type RecordedJob } from '../../core/jobs/job-runner.js'
import { log } from '../database/database-kit.js'

/** A started runner, stopped with the test. */
export async function startJobs(
  t: Test,
  postgres: Postgres,
  lanes?: JobsOptions['lanes']
): Promise<JobRunner> {
  const jobs = new JobRunner({ postgres, log, lanes })
  await jobs.start()
  t.teardown(async () => {
    await jobs.stop()
  })
  return jobs
}

export const job = (
  name: string,
  run: (payload: unknown, context: JobContext) => Promise<void>,
  settings: Partial<RecordedJob> = {}
): RecordedJob => ({ name, lane: 'short', attempts: 3, timeoutMs: 10_000, run, ...settings })
