import type { ResourceDeclarer } from 'busbar/sdk'
import { databaseTeardown } from './api.js'
import type { Databases } from './databases.js'
import type { DatabaseRow } from './records/database-row.js'

export function resources(resource: ResourceDeclarer<Databases>) {
  resource<DatabaseRow>({
    kind: 'database',
    table: 'database',
    name: 'name',
    parents: { project: 'project_id' },
    removal: {
      teardown: databaseTeardown,
      run: async (row, _context, { removal }) => {
        await removal.removeParts(row)
      },
      deleted: async (row, tx, { removal }) => {
        await removal.recordDeleted(row, tx)
      }
    }
  })
}
