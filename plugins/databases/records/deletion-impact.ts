import type { BackupKeeper } from 'busbar/api/backups'
import type { OptionalHandle, ProjectId } from 'busbar/sdk'
import type { DatabaseService } from './database-service.js'

interface Impact {
  readonly backup_count: number
  readonly backup_destinations: string[]
}

/** What of backups is left, or goes, when a database is deleted. */
export class DeletionImpact {
  constructor(
    private readonly parts: {
      readonly databases: DatabaseService
      readonly backups: OptionalHandle<BackupKeeper>
    }
  ) {}

  async of(projectId: ProjectId, id: string): Promise<Impact> {
    await this.parts.databases.row(projectId, id)
    const found = await this.parts.backups.get()?.impact('database', id)
    return { backup_count: found?.backupCount ?? 0, backup_destinations: [...(found?.destinations ?? [])] }
  }
}
