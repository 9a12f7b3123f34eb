import type { Log } from 'busbar/sdk'
import { Logger } from './graphile-worker.js'

const levels = { error: 'error', warning: 'warn', info: 'debug', debug: 'trace' } as const

/** What graphile-worker says, in the platform's log. The outcome of each job is logged by job-execution.ts. */
export function workerLog(log: Log): Logger {
  return new Logger(() => (level, message, meta) => {
    if (meta !== undefined && ('failure' in meta || 'success' in meta)) return
    const error = meta !== undefined && 'error' in meta ? meta.error : undefined
    log[levels[level]](error === undefined ? {} : { err: error }, message)
  })
}
