import type { JobDeclarer, SingletonDeclarer } from 'busbar/sdk'
import type { PlatformBackups } from './platform-backups.js'

/** Longer than any backup takes that still is one. */
const runLimitMs = 24 * 3_600_000

export function jobs(job: JobDeclarer<PlatformBackups>) {
  job<{ readonly runId: string }>({
    name: 'run',
    lane: 'long',
    // A run that the stop of the platform cuts off begins again; one that fails has failed.
    attempts: 2,
    timeoutMs: runLimitMs,
    run: async ({ runId }, { signal }, { runner }) => {
      await runner.run(runId, signal)
    }
  })
  job<object>({
    name: 'scheduled',
    attempts: 3,
    run: async (_payload, _context, { runs }) => {
      await runs.beginScheduled()
    }
  })
}

export function singletons(singleton: SingletonDeclarer<PlatformBackups>) {
  singleton({
    name: 'leftovers',
    // What a process left that was killed.
    run: async (_context, { runner }) => {
      await runner.endStale()
    }
  })
}
