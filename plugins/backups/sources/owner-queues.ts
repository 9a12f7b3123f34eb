import { projectTable } from 'busbar/api/projects'
import type { Database, Tx } from 'busbar/sdk'

/**
 * So many at a time of one owner, fewer together than the plugin has workers: what is backed up may never answer, and others wait for
 * a worker too. A drill takes as much as the database does.
 */
const mostOfOwner = { backup: 2, restore: 2, drill: 1, erase: 1 } as const

/** Which jobs wait for each other: those of one queue are run one after another. */
export class OwnerQueues {
  constructor(private readonly db: Database) {}

  async of(task: keyof typeof mostOfOwner, sourceId: string, tx: Tx): Promise<string> {
    const [row] = await this.db.sql<{ user_id: string }>(
      `select p.user_id from $schema.source s join ${projectTable.name} p on p.id = s.project_id where s.id = ?`,
      [sourceId],
      tx
    )
    const part = Number.parseInt(sourceId.slice(0, 8), 16) % mostOfOwner[task]
    return `${task}:${row?.user_id ?? sourceId}:${part}`
  }
}
