import type { ResourceDeclarer } from 'busbar/sdk'
import { volumeTeardown } from './api.js'
import type { RemovedVolume } from './backup/volume-backups.js'
import type { Volumes } from './volumes.js'

/** Its files are another matter: they go with the application, or when somebody asks for it (`DiscardedVolumes`). */
export function resources(resource: ResourceDeclarer<Volumes>): void {
  resource<RemovedVolume>({
    kind: 'volume',
    table: 'volume',
    name: 'name',
    parents: { application: 'application_id' },
    removal: {
      teardown: volumeTeardown,
      deleted: async (row, tx, { backups }) => {
        await backups.tellRemoved(row, tx)
      }
    }
  })
}
