import { allow, type ChannelDeclarer } from 'busbar/sdk'
import { containerLogEvent } from './api.js'
import type { Logs } from './logs.js'

export function channels(channel: ChannelDeclarer<Logs>) {
  channel({
    name: 'container-logs:{sourceId}',
    access: allow.token('read', { project: { of: ['application', 'database'], param: 'sourceId' } }),
    events: { log: containerLogEvent },
    summary: 'What the containers of an application or a database write, line by line',
    description:
      'It goes on across deployments. A line is in the history before it is told: who subscribes and then reads the history misses nothing, and knows by the `id` what has come twice.'
  })
}
