import type { ResourceDeclarer } from 'busbar/sdk'
import type { Certificates } from './certificates.js'

/** It lies in nothing: certificates are of the installation. */
export function resources(resource: ResourceDeclarer<Certificates>): void {
  resource({ kind: 'certificate', table: 'certificate', name: 'name' })
}
