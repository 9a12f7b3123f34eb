/**
 * A durable job. It is kept in PostgreSQL, runs in one process at a time, and runs again after a crash:
 * a handler reads current state instead of trusting its payload, and is idempotent. A third-party plugin has half of a
 * lane's workers at most.
 */
export interface JobSpec<P, Self> {
  /** Unique within the plugin: `deploy`. */
  readonly name: string
  /** `long` jobs (builds, backups) have workers of their own, so that they never stop the short ones. */
  readonly lane?: 'short' | 'long'
  /** How often it is tried in all; 1 = no retry. Default 5. */
  readonly attempts?: number
  /** After this the signal aborts and the attempt has failed. Default 5 minutes. */
  readonly timeoutMs?: number
  /**
   * It waits for machines of tenants, which answer when they like. A plugin with such a job has half of a lane's workers at most,
   * as third-party plugins have: whoever keeps it waiting keeps nobody else from working. Default false.
   */
  readonly waitsForTenants?: boolean
  readonly run: (payload: P, context: JobContext, self: Self) => Promise<void>
}

export interface JobContext {
  readonly jobId: string
  /** 1 the first time. More than that: an earlier attempt failed or its process died. */
  readonly attempt: number
  /** Aborts on time-out, when the plugin stops and when the process shuts down. */
  readonly signal: AbortSignal
}

export type JobDeclarer<Self> = <P>(spec: JobSpec<P, Self>) => void

/** Work that exactly one process does, for as long as it lives: a collector, a schedule, a sampler. */
export interface SingletonSpec<Self> {
  readonly name: string
  readonly run: (context: { readonly signal: AbortSignal }, self: Self) => Promise<void>
}
export type SingletonDeclarer<Self> = (spec: SingletonSpec<Self>) => void
