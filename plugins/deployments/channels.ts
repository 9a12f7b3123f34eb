import { allow, type ChannelDeclarer, type CurrentState, described, Type } from 'busbar/sdk'
import type { Deployments } from './deployments.js'
import { hasBuildEnded } from './records/deployment-state.js'
import { buildLogEntry, buildStep } from './schemas.js'

const done = described(Type.Null(), 'The build has ended; the deployment says how.')

/** Who has missed the end would wait for ever. */
const ended: CurrentState<Deployments> = {
  event: 'done',
  read: async (ids, { store }) => {
    const states = await store.statesOf(ids)
    return new Map([...states].flatMap(([id, state]) => (hasBuildEnded(state) ? [[id, null] as const] : [])))
  }
}

export function channels(channel: ChannelDeclarer<Deployments>) {
  channel({
    name: 'build-logs:{deploymentId}',
    access: allow.token('read', { project: { of: 'deployment', param: 'deploymentId' } }),
    events: { log: buildLogEntry, done },
    endsWith: 'done',
    current: ended,
    summary: 'The lines of a build as they are written; done when it has ended',
    description:
      'A line is in the record before it is told: who subscribes and then reads the deployment misses nothing. Of a flood only the newest lines are told; the record has the others.'
  })
  channel({
    name: 'build-steps:{deploymentId}',
    access: allow.token('read', { project: { of: 'deployment', param: 'deploymentId' } }),
    events: { step: buildStep, done },
    endsWith: 'done',
    current: ended,
    summary: 'The steps of a build as they begin and end; done when it has ended'
  })
}
