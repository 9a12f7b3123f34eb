import type { ResourceDeclarer } from 'busbar/sdk'
import type { Domains } from './domains.js'

/** Its rows go when somebody removes it, and with the application. */
export function resources(resource: ResourceDeclarer<Domains>): void {
  resource({ kind: 'domain', table: 'domain', name: 'hostname', parents: { application: 'application_id' } })
}
