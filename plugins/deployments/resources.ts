import type { ResourceDeclarer } from 'busbar/sdk'
import type { Deployments } from './deployments.js'

export function resources(resource: ResourceDeclarer<Deployments>) {
  // Records go with their application, by its teardown.
  resource({
    kind: 'deployment',
    table: 'deployment',
    parents: { project: 'project_id', application: 'application_id' }
  })
}
