import type { ResourceDeclarer } from 'busbar/sdk'
import { projectTeardown } from './api.js'
import type { Projects } from './projects.js'

export function resources(resource: ResourceDeclarer<Projects>) {
  resource({
    kind: 'project',
    table: 'project',
    name: 'name',
    removal: {
      teardown: projectTeardown,
      // A user's removals, of projects and of what is in them, come one after another.
      turnsBy: 'user_id',
      deleted: async ({ id }, tx, { projects }) => {
        await projects.recordDeleted(id, tx)
      }
    }
  })
}
