import type { ProjectDirectory } from 'busbar/api/projects'
import {
  askContribution,
  askOrLeaveOut,
  type Clock,
  type ConfigWarning,
  type Contributions,
  type Log,
  type Reach,
  type SignedInCaller
} from 'busbar/sdk'
import type { DeploymentCounter, HostFigures, ProjectScope, ServiceCounter, StatusCounts } from './api.js'
import { appHealth, containerStats, deployStats, nothing, totalOf } from './figures.js'
import { RecentAnswer } from './recent-answer.js'
import type { HostPoint, Stats, Summary } from './schemas.js'

interface StatsParts {
  readonly projects: Pick<ProjectDirectory, 'reachable' | 'count'>
  readonly services: Contributions<ServiceCounter, 'application' | 'database'>
  readonly deployments: Contributions<DeploymentCounter, 'deployments'>
  readonly backups: Contributions<{ count(): Promise<number> }>
  readonly host: Contributions<{ current(): Promise<HostFigures> }, 'metrics'>
  readonly warnings: () => Promise<ConfigWarning[]>
  readonly clock: Pick<Clock, 'now' | 'elapsed'>
  readonly log: Log
}

const counterMs = 20_000
const extraMs = 5_000
const weekMs = 7 * 86_400_000
/** The same for all admins, and made of counts over whole tables. */
const summaryKeptMs = 5_000
/** To look at the engine, disks and clocks takes tens of milliseconds. */
const warningsKeptMs = 30_000
/** How busy processors are takes a second to find out. */
const hostKeptMs = 5_000

type Kind = 'application' | 'database'

/** How the instance and what runs on it is, in one answer. */
export class StatsService {
  readonly #summary: RecentAnswer<Summary>
  readonly #warnings: RecentAnswer<ConfigWarning[]>
  readonly #host: RecentAnswer<HostPoint | null>

  constructor(private readonly parts: StatsParts) {
    const { clock } = parts
    this.#summary = new RecentAnswer(async () => await this.#count(), summaryKeptMs, clock)
    this.#warnings = new RecentAnswer(parts.warnings, warningsKeptMs, clock)
    this.#host = new RecentAnswer(async () => await this.#measureHost(), hostKeptMs, clock)
  }

  async stats(caller: SignedInCaller, reach: Reach): Promise<Stats> {
    const isAdmin = caller.user.role === 'admin'
    // The machine and the instance are in no project, so a pinned token is not told of them.
    const seesInstance = isAdmin && reach.pins === null
    const scope = await this.#scope(reach)
    const [services, deployments, failed_backups, host, config_warnings] = await Promise.all([
      this.#services(scope),
      this.#deployments(scope),
      seesInstance ? this.#failedBackups() : 0,
      seesInstance ? this.#host.read() : null,
      seesInstance ? this.#warnings.read() : []
    ])
    const health = appHealth(services.get('application') ?? nothing, deployments.underWay)
    const others = [...services].flatMap(([kind, counts]) => (kind === 'application' ? [] : [counts]))
    const error_services = others.reduce((sum, { errored }) => sum + errored, health.errored)
    const unhealthy_services = others.reduce((sum, { unhealthy }) => sum + unhealthy, health.unhealthy)
    const failed_deploys = deployments.failing
    return {
      is_admin: isAdmin,
      app_health: health,
      deploy_7d: deployStats(deployments.ended),
      needs_attention: {
        failed_deploys,
        error_services,
        unhealthy_services,
        failed_backups,
        total: failed_deploys + error_services + unhealthy_services + failed_backups
      },
      host,
      config_warnings
    }
  }

  async summary(): Promise<Summary> {
    return await this.#summary.read()
  }

  async #count(): Promise<Summary> {
    const [projects, services, deployments] = await Promise.all([
      this.parts.projects.count(),
      this.#services(null),
      this.#askDeployments(async counter => await counter.total())
    ])
    return {
      projects,
      applications: totalOf(services.get('application') ?? nothing),
      databases: totalOf(services.get('database') ?? nothing),
      deployments: deployments ?? 0,
      containers: containerStats([...services])
    }
  }

  /** Null for who sees everything. */
  async #scope(reach: Reach): Promise<ProjectScope> {
    if (reach.userId === null && reach.pins === null) return null
    return (await this.parts.projects.reachable(reach)).map(({ id }) => id)
  }

  async #services(scope: ProjectScope): Promise<ReadonlyMap<Kind, StatusCounts>> {
    return new Map(
      await Promise.all(
        this.parts.services.entries().map(async ({ key, plugin, value }) => {
          const what = `the number of services of the plugin "${plugin}"`
          const counts = await askContribution(async () => await value.count(scope), { ms: counterMs, what })
          return [key as Kind, counts] as const
        })
      )
    )
  }

  async #deployments(scope: ProjectScope) {
    const since = new Date(this.parts.clock.now().getTime() - weekMs)
    const [ended, failing, underWay] = await Promise.all([
      this.#askDeployments(async counter => await counter.ended(scope, since)),
      this.#askDeployments(async counter => await counter.failing(scope)),
      this.#askDeployments(async counter => await counter.underWay(scope))
    ])
    return {
      ended: ended ?? { succeeded: 0, failed: 0, medianBuildMs: 0 },
      failing: failing ?? 0,
      underWay: underWay ?? nothing
    }
  }

  async #askDeployments<T>(ask: (counter: DeploymentCounter) => Promise<T>): Promise<T | undefined> {
    const counter = this.parts.deployments.get('deployments')
    if (counter === undefined) return undefined
    return await askContribution(async () => await ask(counter), {
      ms: counterMs,
      what: 'the number of deployments'
    })
  }

  async #failedBackups(): Promise<number> {
    const counts = await Promise.all(
      this.parts.backups.entries().map(
        async entry =>
          await askOrLeaveOut(entry, async source => await source.count(), {
            what: 'the number of failed backups',
            takes: 'a whole number',
            take: answer => (Number.isSafeInteger(answer) ? Number(answer) : undefined),
            ms: extraMs,
            log: this.parts.log
          })
      )
    )
    return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
  }

  async #measureHost(): Promise<HostPoint | null> {
    const source = this.parts.host.entries().find(({ key }) => key === 'metrics')
    if (source === undefined) return null
    const figures = await askOrLeaveOut(source, async host => await host.current(), {
      what: 'the figures of the machine',
      takes: 'the figures',
      take: answer => (typeof answer === 'object' && answer !== null ? (answer as HostFigures) : undefined),
      ms: extraMs,
      log: this.parts.log
    })
    if (figures === undefined) return null
    const { recorded_at, ...numbers } = figures
    const of = (name: keyof typeof numbers): number => numbers[name] ?? 0
    return {
      cpu_percent: of('cpu_percent'),
      memory_used: of('memory_used'),
      memory_total: of('memory_total'),
      disk_used: of('disk_used'),
      disk_total: of('disk_total'),
      swap_used: of('swap_used'),
      swap_total: of('swap_total'),
      recorded_at
    }
  }
}
