import type { EnqueueOptions, JobContext } from 'busbar/sdk'
import type { JobRecord } from '../declarations/records.js'

export type LaneName = JobRecord['lane']

/** A plugin's declaration with `self` bound. */
export interface RecordedJob extends Omit<JobRecord, 'run'> {
  run(payload: unknown, context: JobContext): Promise<void>
}

/** A piece of work to be stored. */
export interface Submission extends EnqueueOptions {
  readonly plugin: string
  readonly name: string
  readonly payload: object
  /** For a job that this process may not know; otherwise its declaration says. */
  readonly attempts?: number
}

/** How a job is called in the queue. */
export const identifierOf = (plugin: string, name: string): string => `${plugin}:${name}`
