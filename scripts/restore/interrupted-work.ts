import type { BulkConnection } from 'busbar/sdk'
import { interruptedBackups } from '../../plugins/backups/interrupted-work.js'
import { interruptedDatabases } from '../../plugins/databases/interrupted-work.js'
import { interruptedDeploys } from '../../plugins/deployments/interrupted-work.js'
import { interruptedVolumes } from '../../plugins/volumes/interrupted-work.js'
import { areThere, type NeededColumns } from './tables-there.js'

/** What of the work of a plugin must not be taken up by a platform that was restored. */
interface InterruptedWork extends NeededColumns {
  /** Answers what was ended, a sentence for each. */
  end(connection: Pick<BulkConnection, 'query'>): Promise<readonly string[]>
}

const all: readonly InterruptedWork[] = [
  interruptedBackups,
  interruptedDatabases,
  interruptedDeploys,
  interruptedVolumes
]

/**
 * In the transaction that brings back what an archive has: ends work that waited, or was under way, when it was made, and that would
 * replace or remove something of today. Plugins whose tables are not in the archive, or are those of another release, have none.
 */
export async function endInterruptedWork(connection: Pick<BulkConnection, 'query'>): Promise<string[]> {
  const said: string[] = []
  for (const work of all) if (await areThere(connection, work)) said.push(...(await work.end(connection)))
  return said
}
