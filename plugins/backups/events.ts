import { applicationDeleted } from 'busbar/api/applications'
import type { EventDeclarer } from 'busbar/sdk'
import type { Backups } from './backups.js'

export function events(on: EventDeclarer<Backups>): void {
  on(applicationDeleted, async ({ applicationId }, { orphans }) => {
    await orphans.applicationRemoved(applicationId)
  })
}
