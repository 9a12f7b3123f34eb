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
  channel({
    name: 'build-steps:{deploymentId}',
    access: allow.token('read', { project: { of: 'deployment', param: 'deploymentId' } }),
    events: ['step', 'done'],
    endsWith: 'done',
    summary: 'The steps of a build as they begin and end; done when it has ended'
  })
}
