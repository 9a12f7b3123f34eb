import { allow, type ChannelDeclarer, described, named, object, uuid } from 'busbar/sdk'
import type { Databases } from './databases.js'
import { databaseStatus } from './schemas.js'

const statusChange = named(
  'DatabaseStatusChange',
  object({ database_id: described(uuid(), 'The database.'), status: databaseStatus }),
  { description: 'A database has another status.' }
)

export function channels(channel: ChannelDeclarer<Databases>) {
  channel({
    name: 'database-status:{databaseId}',
    summary: 'The status of one database, whenever it changes',
    events: { status: statusChange },
    current: {
      event: 'status',
      read: async (ids, { store }) => {
        const statuses = await store.statusesOf(ids)
        return new Map([...statuses].map(([id, status]) => [id, { database_id: id, status }]))
      }
    },
    access: allow.token('read', { project: { of: 'database', param: 'databaseId' } })
  })
}
