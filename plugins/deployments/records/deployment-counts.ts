import type { Figure } from 'busbar/api/metrics'
import type { DeploymentStatus } from '../api.js'
import type { DeploymentCountStore } from './deployment-count-store.js'
import { activeStatuses } from './deployment-state.js'
import type { DeploymentRow } from './deployment-store.js'

interface Count {
  readonly labels: Readonly<Record<string, string>>
  count: number
  seconds: number
}

/** How often something has come to which end in this process, and how long it took together. */
class Counts {
  readonly #counts = new Map<string, Count>()

  add(labels: Readonly<Record<string, string>>, from: Date | string, to: Date): void {
    const key = Object.values(labels).join(' ')
    const known = this.#counts.get(key) ?? { labels, count: 0, seconds: 0 }
    this.#counts.set(key, known)
    known.count++
    known.seconds += Math.max(0, to.getTime() - new Date(from).getTime()) / 1000
  }

  figures(name: string, what: string): Figure[] {
    const all = [...this.#counts.values()]
    return [
      {
        name: `${name}s_total`,
        help: `${what} that have ended`,
        type: 'counter',
        values: all.map(({ labels, count }) => ({ labels, value: count }))
      },
      {
        name: `${name}_seconds_total`,
        help: 'How long these took together',
        type: 'counter',
        values: all.map(({ labels, seconds }) => ({ labels, value: seconds }))
      }
    ]
  }
}

/** What is counted of deployments, for who watches the platform. */
export class DeploymentCounts {
  readonly #deployments = new Counts()
  readonly #builds = new Counts()

  constructor(private readonly store: Pick<DeploymentCountStore, 'active'>) {}

  deploymentEnded(
    { kind, started_at: startedAt }: DeploymentRow,
    status: 'success' | 'failed',
    now: Date
  ): void {
    this.#deployments.add({ kind, status }, startedAt, now)
  }

  /** Of one that has begun. */
  buildEnded({ build_started_at: startedAt }: DeploymentRow, to: DeploymentStatus, now: Date): void {
    if (startedAt !== null)
      this.#builds.add({ status: to === 'failed' ? 'failed' : 'success' }, startedAt, now)
  }

  async figures(): Promise<readonly Figure[]> {
    const active = new Map((await this.store.active()).map(({ status, count }) => [status, count]))
    return [
      ...this.#deployments.figures('deployment', 'Deployments'),
      ...this.#builds.figures('build', 'Builds'),
      {
        name: 'deployments_active',
        help: 'Deployments under way in all processes, by their status',
        type: 'gauge',
        values: activeStatuses.map(status => ({ labels: { status }, value: active.get(status) ?? 0 }))
      }
    ]
  }
}
