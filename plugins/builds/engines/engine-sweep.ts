import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import type { StartedEngines } from './engine-store.js'
import type { ProjectEngines } from './project-engines.js'

interface SweepParts {
  readonly engines: Pick<ProjectEngines, 'stop'>
  readonly started: Pick<StartedEngines, 'idleSince'>
  readonly clock: Clock
  readonly log: Log
  /** How long one stays started without a build. */
  readonly idleMs: number
}

const longestLookMs = 30_000
const shortestLookMs = 500

/**
 * Stops the build engines of projects in which nothing has been built for some time, whichever process started them, until its
 * signal aborts.
 */
export async function sweepIdleEngines(
  { engines, started, clock, log, idleMs }: SweepParts,
  signal: AbortSignal
): Promise<void> {
  const stopIdle = async (): Promise<void> => {
    for (const projectId of await started.idleSince(new Date(clock.now().getTime() - idleMs)))
      await engines
        .stop(projectId)
        .catch((error: unknown) =>
          log.warn({ err: error, projectId }, 'an idle build engine could not be stopped')
        )
  }
  await runRepeatedly(stopIdle, {
    everyMs: Math.max(shortestLookMs, Math.min(longestLookMs, idleMs / 2)),
    clock,
    signal,
    onError: error => log.debug({ err: error }, 'idle build engines stay started for now')
  })
}
