import type { RouteDeclarer } from 'busbar/sdk'
import type { Backups } from './backups.js'
import { databaseConfigRoutes } from './configs/database-routes.js'
import { volumeConfigRoutes } from './configs/volume-routes.js'
import { destinationRoutes } from './destinations/routes.js'
import { databaseRestoreRoutes } from './restores/database-routes.js'
import { orphanRoutes } from './restores/orphan-routes.js'
import { orphanedVolumeRoutes } from './restores/orphaned-volume-routes.js'
import { volumeRestoreRoutes } from './restores/volume-routes.js'
import { databaseBackupRoutes } from './runs/database-routes.js'
import { projectBackupRoutes } from './runs/project-routes.js'
import { volumeBackupRoutes } from './runs/volume-routes.js'

export function routes(route: RouteDeclarer<Backups>) {
  destinationRoutes(route)
  projectBackupRoutes(route)
  databaseConfigRoutes(route)
  databaseBackupRoutes(route)
  databaseRestoreRoutes(route)
  orphanRoutes(route)
  volumeConfigRoutes(route)
  volumeBackupRoutes(route)
  volumeRestoreRoutes(route)
  orphanedVolumeRoutes(route)
}
