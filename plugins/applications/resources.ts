import type { ResourceDeclarer } from 'busbar/sdk'
import { applicationTeardown } from './api.js'
import type { RemovedApplication } from './application-removal.js'
import type { Applications } from './applications.js'

export function resources(resource: ResourceDeclarer<Applications>) {
  resource<RemovedApplication>({
    kind: 'application',
    table: 'application',
    name: 'name',
    // A preview is in the application that it is one of.
    parents: { project: 'project_id', application: 'parent_application_id' },
    removal: {
      teardown: applicationTeardown,
      run: async (row, { signal }, { removal }) => {
        await removal.removeContainers(row, signal)
      },
      deleted: async (row, tx, { removal }) => {
        await removal.recordDeleted(row, tx)
      }
    }
  })
}
