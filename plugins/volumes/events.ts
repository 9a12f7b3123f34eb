import { applicationDeleted } from 'busbar/api/applications'
import { deploymentFinished } from 'busbar/api/deployments'
import type { EventDeclarer } from 'busbar/sdk'
import type { Volumes } from './volumes.js'

export function events(on: EventDeclarer<Volumes>): void {
  on(deploymentFinished, async ({ applicationId }, { discarded }) => {
    await discarded.lookAgain(applicationId)
  })
  on(applicationDeleted, async ({ applicationId }, { removal }) => {
    await removal.leftOf(applicationId)
  })
}
