import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { projectBackup, projectBackupOf } from './schemas.js'

export function projectBackupRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url: '/api/projects/:projectId/backups',
    group: 'Backup Destinations',
    operationId: 'ListProjectBackups',
    summary: 'Get Recent Backups',
    description:
      'The newest 50 backups of databases and volumes of the project, and at least the newest of each, the newest first.',
    access: allow.token('read', { project: { param: 'projectId' } }),
    items: projectBackup,
    handler: async ({ project, page }, { backups }) => {
      const { rows, total } = await backups.recent(project, page)
      return { rows: rows.map(projectBackupOf), total }
    }
  })
}
