import { applicationTable } from 'busbar/api/applications'
import { type Clock, type Database, type Log, runRepeatedly } from 'busbar/sdk'
import type { ProjectEngines } from './project-engines.js'

interface SweepParts {
  readonly engines: Pick<ProjectEngines, 'running' | 'stop'>
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** How long one stays started without a build. */
  readonly idleMs: number
}

const longestLookMs = 30_000
const shortestLookMs = 500

/**
 * Stops the build engines of projects in which nothing has been built for some time, whichever process started them: for as
 * long as one process lives, and what is left by those that died.
 */
export async function sweepIdleEngines(parts: SweepParts, signal: AbortSignal): Promise<void> {
  const idleSince = new Map<string, number>()
  await runRepeatedly(async () => await stopIdle(parts, idleSince), {
    everyMs: Math.max(shortestLookMs, Math.min(longestLookMs, parts.idleMs / 2)),
    clock: parts.clock,
    signal,
    onError: error => parts.log.debug({ err: error }, 'idle build engines stay started for now')
  })
}

async function stopIdle(
  { engines, db, clock, idleMs }: SweepParts,
  idleSince: Map<string, number>
): Promise<void> {
  const running = await engines.running()
  const used = running.length === 0 ? new Set<string>() : await projectsThatBuild(db, clock)
  for (const id of idleSince.keys())
    if (!running.some(({ projectId }) => projectId === id)) idleSince.delete(id)
  for (const { projectId } of running) {
    const now = clock.now().getTime()
    if (used.has(projectId)) idleSince.delete(projectId)
    else if (now - (idleSince.get(projectId) ?? now) >= idleMs) await engines.stop(projectId)
    else if (!idleSince.has(projectId)) idleSince.set(projectId, now)
  }
}

/** A build is noted before its engine starts, and for as long as its process says that it lives. */
async function projectsThatBuild(db: Database, clock: Clock): Promise<ReadonlySet<string>> {
  const rows = await db.sql<{ readonly projectId: string }>(
    `
    select distinct a.project_id as "projectId"
    from $schema.preparation p join ${applicationTable.name} a on cast(a.id as text) = p.application_id
    where p.claimed_until > :now`,
    { now: clock.now() }
  )
  return new Set(rows.map(({ projectId }) => projectId))
}
