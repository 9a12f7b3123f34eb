import { allow, type ChannelDeclarer, described, named, object, uuid } from 'busbar/sdk'
import { applicationStatus } from './application-schema.js'
import type { Applications } from './applications.js'

const statusChange = named(
  'ApplicationStatusChange',
  object({
    application_id: described(uuid(), 'The application.'),
    status: applicationStatus
  }),
  { description: 'An application has another status.' }
)

export function channels(channel: ChannelDeclarer<Applications>) {
  channel({
    name: 'container-status:{applicationId}',
    summary: 'The status of one application, whenever it changes',
    events: { status: statusChange },
    current: {
      event: 'status',
      read: async (ids, { deploys }) => {
        const statuses = await deploys.statusesOf(ids)
        return new Map([...statuses].map(([id, status]) => [id, { application_id: id, status }]))
      }
    },
    access: allow.token('read', { project: { of: 'application', param: 'applicationId' } })
  })
}
