import type { ProjectScope, StatusCounts } from 'busbar/api/platform'
import type { DatabaseStatus } from '../api.js'
import type { DatabaseStore } from '../records/database-store.js'

/** How many databases there are, as figures count them: one that is backed up or upgraded serves, or is about to. */
export async function countByStatus(store: DatabaseStore, scope: ProjectScope): Promise<StatusCounts> {
  const rows = await store.counts(scope)
  const of = (...wanted: readonly DatabaseStatus[]): number =>
    rows.reduce((sum, { status, count }) => (wanted.includes(status) ? sum + count : sum), 0)
  return {
    running: of('running', 'backing_up', 'upgrading'),
    unhealthy: 0,
    errored: of('failed'),
    stopped: of('stopped'),
    inactive: of('creating')
  }
}
