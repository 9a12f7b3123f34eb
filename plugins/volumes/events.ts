import { applicationDeleted } from 'busbar/api/applications'
import type { EventDeclarer } from 'busbar/sdk'
import type { Volumes } from './volumes.js'

export function events(on: EventDeclarer<Volumes>): void {
  on(applicationDeleted, async ({ applicationId }, { removal }) => {
    await removal.leftOf(applicationId)
  })
}
