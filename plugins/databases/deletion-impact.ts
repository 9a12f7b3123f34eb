import type { ProjectId } from 'busbar/sdk'
import type { DatabaseService } from './database-service.js'

interface Impact {
  readonly backup_count: number
  readonly backup_destinations: string[]
}

/** What of backups is left, or goes, when a database is deleted. */
export class DeletionImpact {
  constructor(private readonly parts: { readonly databases: DatabaseService }) {}

  async of(projectId: ProjectId, id: string): Promise<Impact> {
    await this.parts.databases.row(projectId, id)
    return { backup_count: 0, backup_destinations: [] }
  }
}
