import { allow, type ChannelDeclarer } from 'busbar/sdk'
import type { Applications } from './applications.js'

export function channels(channel: ChannelDeclarer<Applications>) {
  channel({
    name: 'container-status:{applicationId}',
    summary: 'The status of one application, whenever it changes',
    events: ['status'],
    access: allow.token('read', { project: { of: 'application', param: 'applicationId' } })
  })
}
