import { allow, type ChannelDeclarer } from 'busbar/sdk'
import type { Deployments } from './deployments.js'

export function channels(channel: ChannelDeclarer<Deployments>) {
  channel({
    name: 'build-logs:{deploymentId}',
    access: allow.token('read', { project: { of: 'deployment', param: 'deploymentId' } }),
    events: ['log', 'done'],
    endsWith: 'done',
    summary: 'The lines of a build as they are written; done when it has ended'
  })
}
