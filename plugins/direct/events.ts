import { applicationDeleted } from 'busbar/api/applications'
import type { EventDeclarer } from 'busbar/sdk'
import type { Direct } from './direct.js'

export function events(on: EventDeclarer<Direct>) {
  on(applicationDeleted, ({ applicationId }, { service }) => service.close(applicationId))
}
