import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import {
  askOrLeaveOut,
  type Clock,
  type Contributions,
  isProblem,
  isUuid,
  type Log,
  type OptionalHandle,
  type ProjectId
} from 'busbar/sdk'
import type { ApplicationDomains } from '../api.js'
import { problems } from '../problems.js'
import type { ServiceMetrics } from '../schemas.js'
import type { ApplicationContainers } from './application-containers.js'
import type { ApplicationSamples } from './application-samples.js'
import { type ApplicationRow, type ApplicationStore, runningOf } from './application-store.js'
import type { ContainerUsage } from './container-usage.js'

/** For who asks again within that time. */
const sharedForMs = 2_000
/** Of more than these, what was measured in the last minutes is taken: an engine takes up to a second for a few dozens. */
const measuredAnew = 64
const recentMs = { few: 1_000, many: 300_000 }
const domainsLimitMs = 5_000
const longestDomain = 253

interface ProjectUsageParts {
  readonly store: ApplicationStore
  readonly containers: ApplicationContainers
  readonly samples: Pick<ApplicationSamples, 'usage' | 'recent'>
  readonly runtime: OptionalHandle<Pick<ContainerRuntime, 'list'>>
  readonly domains: Contributions<ApplicationDomains>
  readonly clock: Clock
  readonly log: Log
}

/** By the id of the application. */
type ProjectMetrics = Readonly<Record<string, ServiceMetrics>>

/** What the applications of a project use now. Whoever asks while it is being measured, or soon after, shares the answer. */
export class ProjectUsage {
  readonly #shared = new Map<string, { readonly answer: Promise<ProjectMetrics>; readonly until: number }>()

  constructor(private readonly parts: ProjectUsageParts) {}

  /** Rejects where something runs and the engine does not answer. */
  async read(projectId: ProjectId): Promise<ProjectMetrics> {
    const now = this.parts.clock.elapsed()
    for (const [id, { until }] of this.#shared) if (until <= now) this.#shared.delete(id)
    const shared = this.#shared.get(projectId)
    if (shared !== undefined) return await shared.answer
    const answer = this.#measure(projectId)
    this.#shared.set(projectId, { answer, until: now + sharedForMs })
    // A failure is nobody else's.
    answer.catch(() => this.#shared.delete(projectId))
    return await answer
  }

  async #measure(projectId: ProjectId): Promise<ProjectMetrics> {
    const { store, samples, clock } = this.parts
    const rows = await store.ofProject(projectId)
    const [containers, domains] = await Promise.all([
      this.#containersOf(projectId, rows),
      this.#domainsOf(rows.map(({ id }) => id))
    ])
    const now = clock.now()
    const maxAgeMs = containers.size > measuredAnew ? recentMs.many : recentMs.few
    const measured = await Promise.all(
      rows.map(async row => {
        const container = containers.get(row.id)
        const usage =
          container === undefined
            ? undefined
            : (samples.recent(container.id, maxAgeMs) ?? (await this.#usageOf(row)))
        return [row.id, metricsOf(row, { container, usage, domain: domains.get(row.id), now })] as const
      })
    )
    return Object.fromEntries(measured)
  }

  /** The containers that run, by application: one look for all of them, and none where nothing runs. */
  async #containersOf(
    projectId: ProjectId,
    rows: readonly ApplicationRow[]
  ): Promise<ReadonlyMap<string, ContainerState>> {
    const running = rows.map(runningOf).filter(one => one !== undefined)
    if (running.length === 0) return new Map()
    const engine = this.parts.runtime.get()
    if (engine === undefined) throw problems.containersOff()
    const found = new Map(
      (await engine.list({ projectId }))
        .filter(({ status }) => status === 'running')
        .map(container => [
          `${container.owner.applicationId ?? ''}/${container.owner.deploymentId ?? ''}`,
          container
        ])
    )
    return new Map(
      running.flatMap(({ id, deploymentId }) => {
        const container = found.get(`${id}/${deploymentId}`)
        if (container === undefined) return []
        this.parts.containers.note(id, { deploymentId, containerId: container.id })
        return [[id, container]]
      })
    )
  }

  /** Undefined for one that has ended meanwhile, or that the engine refuses to measure: the others count all the same. */
  async #usageOf(row: ApplicationRow): Promise<ContainerUsage | undefined> {
    const application = runningOf(row)
    if (application === undefined) return undefined
    try {
      return await this.parts.samples.usage(application)
    } catch (error) {
      if (isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE') throw error
      this.parts.log.warn({ err: error, applicationId: row.id }, 'an application could not be measured')
      return undefined
    }
  }

  async #domainsOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { domains, log } = this.parts
    const answers = await Promise.all(
      domains.entries().map(
        async entry =>
          (await askOrLeaveOut(entry, value => value.domainsOf(ids), {
            what: 'the domains',
            takes: `a map of ids to texts of at most ${longestDomain} characters`,
            take: takeDomains,
            ms: domainsLimitMs,
            log
          })) ?? new Map<string, string>()
      )
    )
    return new Map(answers.flatMap(answer => [...answer]))
  }
}

const takeDomains = (answer: unknown): ReadonlyMap<string, string> | undefined =>
  answer instanceof Map &&
  [...(answer as Map<unknown, unknown>)].every(
    ([id, domain]) =>
      typeof id === 'string' && isUuid(id) && typeof domain === 'string' && domain.length <= longestDomain
  )
    ? new Map(answer as Map<string, string>)
    : undefined

/** Pure. What does not run uses nothing. */
function metricsOf(
  { status, container_port: port }: ApplicationRow,
  {
    container,
    usage,
    domain = '',
    now
  }: {
    readonly container: ContainerState | undefined
    readonly usage: ContainerUsage | undefined
    readonly domain: string | undefined
    readonly now: Date
  }
): ServiceMetrics {
  const startedAt = container === undefined ? Number.NaN : Date.parse(container.startedAt)
  return {
    cpu_percent: usage?.cpuPercent ?? 0,
    memory_used: usage?.memoryBytes ?? 0,
    memory_limit: usage?.memoryLimitBytes ?? 0,
    uptime_seconds: Number.isNaN(startedAt) ? 0 : Math.max(0, Math.floor((now.getTime() - startedAt) / 1000)),
    status,
    domain,
    port: port ?? 0
  }
}
