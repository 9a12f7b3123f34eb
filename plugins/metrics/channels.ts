import { allow, type ChannelDeclarer } from 'busbar/sdk'
import type { Metrics } from './metrics.js'
import { applicationUsage, hostUsage } from './schemas.js'
import { applicationUsageOf, hostUsageOf } from './shown-usage.js'

export function channels(channel: ChannelDeclarer<Metrics>): void {
  channel({
    name: 'metrics:host',
    summary: 'What the machine of the platform uses, once a second',
    description:
      'The first message comes after a second. `GET /api/metrics/host` has what was measured before, and is open to the same callers.',
    events: { metrics: hostUsage },
    access: allow.token('metrics', { role: 'admin', project: 'none' }),
    source: ({ signal, publish }, { host }) => {
      untilAborted(
        signal,
        host.follow(point => {
          publish('metrics', hostUsageOf(point))
        })
      )
    }
  })
  channel({
    name: 'metrics:app:{applicationId}',
    summary: 'What one application uses, every two seconds',
    description:
      'It is measured while somebody has subscribed, and nothing comes while it does not run: the subscription stays, and goes on with the next start. The first message takes about two seconds.',
    events: { metrics: applicationUsage },
    access: allow.token('metrics', { project: { of: 'application', param: 'applicationId' } }),
    source: ({ id = '', signal, publish }, { feed }) => {
      untilAborted(
        signal,
        feed.follow(id, {
          give: usage => {
            publish('metrics', applicationUsageOf(usage))
          },
          end: () => {}
        })
      )
    }
  })
}

function untilAborted(signal: AbortSignal, stop: () => void): void {
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
}
