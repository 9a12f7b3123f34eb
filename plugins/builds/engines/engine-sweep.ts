import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import type { EngineCaches } from './engine-caches.js'
import type { EngineRecords } from './engine-store.js'
import type { ProjectEngines } from './project-engines.js'
import { SideBySide } from './side-by-side.js'

interface SweepParts {
  readonly engines: Pick<ProjectEngines, 'stop'>
  readonly records: Pick<EngineRecords, 'idleSince'>
  readonly clock: Clock
  readonly log: Log
  /** How long one stays started without a build. */
  readonly idleMs: number
}

/** A stop takes seconds, and the engine of the platform has other work as well. */
const atOnce = { most: 4, patienceMs: 30_000 }
const longestLookMs = 30_000
const shortestLookMs = 500

/**
 * Stops the build engines of projects in which nothing has been built for some time, whichever process started them, until its
 * signal aborts.
 */
export async function sweepIdleEngines(
  { engines, records, clock, log, idleMs }: SweepParts,
  signal: AbortSignal
): Promise<void> {
  const sideBySide = new SideBySide({ clock, ...atOnce })
  const stop = async (projectId: string): Promise<void> => {
    await engines
      .stop(projectId)
      .catch((error: unknown) =>
        log.warn({ err: error, projectId }, 'an idle build engine could not be stopped')
      )
  }
  const stopIdle = async (): Promise<void> => {
    const idle = await records.idleSince(new Date(clock.now().getTime() - idleMs))
    await sideBySide.run(idle, stop, signal)
  }
  await runRepeatedly(stopIdle, {
    everyMs: Math.max(shortestLookMs, Math.min(longestLookMs, idleMs / 2)),
    clock,
    signal,
    onError: error => log.debug({ err: error }, 'idle build engines stay started for now')
  })
}

interface TidyParts {
  readonly engines: Pick<ProjectEngines, 'tidy' | 'untidy'>
  readonly records: Pick<EngineRecords, 'abandoned'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Ends builds whose process died, and removes what they and others have left in build engines that run, until its signal aborts. What
 * such a process was at lapses after a minute.
 */
export async function tidyEngines(
  { engines, records, clock, log }: TidyParts,
  signal: AbortSignal
): Promise<void> {
  const done = new Set<string>()
  const sideBySide = new SideBySide({ clock, ...atOnce })
  const tidy = async (): Promise<void> => {
    const abandoned = (await records.abandoned()).filter(({ deploymentId }) => !done.has(deploymentId))
    const projects = new Set([...abandoned.map(({ projectId }) => projectId), ...engines.untidy()])
    const tidyOne = async (projectId: string): Promise<void> => {
      try {
        await engines.tidy(projectId)
        for (const one of abandoned) if (one.projectId === projectId) done.add(one.deploymentId)
      } catch (error) {
        log.warn({ err: error, projectId }, 'what builds have left in a build engine stays for now')
      }
    }
    await sideBySide.run([...projects], tidyOne, signal)
  }
  await runRepeatedly(tidy, {
    everyMs: longestLookMs,
    clock,
    signal,
    onError: error => log.debug({ err: error }, 'what builds have left in build engines stays for now')
  })
}

interface TrimParts {
  readonly caches: Pick<EngineCaches, 'trim'>
  readonly clock: Clock
  readonly log: Log
  /** What all build engines may keep together. */
  readonly maxBytes: number
}

const trimEveryMs = 3_600_000

/** Removes caches that have not been used for longest, where all together have more than they may, until its signal aborts. */
export async function trimCaches(
  { caches, clock, log, maxBytes }: TrimParts,
  signal: AbortSignal
): Promise<void> {
  await runRepeatedly(async () => await caches.trim(maxBytes), {
    everyMs: trimEveryMs,
    clock,
    signal,
    onError: error => log.warn({ err: error }, 'the caches of build engines could not be trimmed')
  })
}
