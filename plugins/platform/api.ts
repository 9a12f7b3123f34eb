import { extensionPoint, service } from 'busbar/sdk'

/** Which projects figures are asked of: these, or null for all of the instance. */
export type ProjectScope = readonly string[] | null

/** How many there are of something that runs in containers, each counted once by what its container does. */
export interface StatusCounts {
  readonly running: number
  /** It runs, and its health check fails. */
  readonly unhealthy: number
  /** It has ended by itself, or could not be started. */
  readonly errored: number
  /** Somebody has stopped it. */
  readonly stopped: number
  /** It has never had a container. */
  readonly inactive: number
}

/**
 * Counts what users run, for `GET /api/stats` and `GET /api/summary`. Contributed under the kind of resource; it is asked for
 * every look at either, so it takes one statement. What it rejects with is the answer.
 */
export interface ServiceCounter {
  count(scope: ProjectScope): Promise<StatusCounts>
}
export const serviceCounters = extensionPoint<ServiceCounter, 'application' | 'database'>(
  'platform.serviceCounters'
)

/** Deployments that have ended since a time. */
export interface EndedDeployments {
  readonly succeeded: number
  readonly failed: number
  /** Of the builds of those that succeeded; 0 where nothing was built. */
  readonly medianBuildMs: number
}

/** Counts deployments, for the same answers. */
export interface DeploymentCounter {
  ended(scope: ProjectScope, since: Date): Promise<EndedDeployments>
  /** Applications whose latest deployment has failed. */
  failing(scope: ProjectScope): Promise<number>
  /** Applications with a deployment under way of which no version runs, by what they count as without it. */
  underWay(scope: ProjectScope): Promise<Pick<StatusCounts, 'errored' | 'stopped' | 'inactive'>>
  /** All records of the instance. */
  total(): Promise<number>
}
export const deploymentCounters = extensionPoint<DeploymentCounter, 'deployments'>(
  'platform.deploymentCounters'
)

/** Backups of any kind whose latest run has failed, for `GET /api/stats`; asked for admins alone. */
export const failedBackups = extensionPoint<{ count(): Promise<number> }>('platform.failedBackups')

/** Whether there is a builder that works by BuildKit, for `GET /api/features`. Contributed by who keeps the builders; answers from memory. */
export const buildkitBuilders = extensionPoint<{ areThere(): boolean }, 'builds'>('platform.buildkitBuilders')

/** Something that the installation consists of: the proxy, the engine that runs containers, the database. */
export interface PlatformPart {
  /** As requests name it, in lower case: `caddy`. */
  readonly id: string
  /** As people know it: `Caddy`. */
  readonly name: string
  /** What it is for, without a full stop. */
  readonly description: string
  /** Why it does not work, without a full stop; null where it does. What it rejects with says the same. */
  fault(): Promise<string | null>
  /** Ends it and starts it anew; absent where that is nobody's to do here. Rejects with the reason. */
  restart?(): Promise<void>
  /** The newest lines of its log, at most `lines`; absent where there is none to be read. */
  logs?(lines: number): Promise<string>
}

/**
 * Parts of the installation, for `GET /api/server/services`, and for the operations that restart one and read its log. Contributed
 * by who uses the part; asked for each look, so the list is made from memory.
 */
export const platformParts = extensionPoint<
  { parts(): readonly PlatformPart[] },
  'proxy' | 'engine' | 'builder'
>('platform.parts')

/** What the platform's machine uses now, sizes in bytes; null for what cannot be read. */
export interface HostFigures {
  /** Of all processors together: 0 to 100. */
  readonly cpu_percent: number | null
  readonly memory_used: number | null
  readonly memory_total: number | null
  /** Of the file system that has `/`. */
  readonly disk_used: number | null
  readonly disk_total: number | null
  readonly swap_used: number | null
  readonly swap_total: number | null
  readonly recorded_at: Date
}
/** Contributed by who measures it. A measurement may take a second: it is asked for every few seconds at most. */
export const hostFigures = extensionPoint<{ current(): Promise<HostFigures> }, 'metrics'>(
  'platform.hostFigures'
)

/**
 * Tells everybody that the platform itself is being updated: `updating` of `GET /api/version`, and the event `update` on the
 * channel `platform`. Whoever updates it calls `begin` before anything else, and `abandon` where the update fails before
 * anything of the machine was changed. From then on nothing is told: the platform is stopped, and the release that starts next
 * says by itself that it is not being updated.
 *
 * All processes of the installation are told. What was begun by a process that dies is over for the others after a minute, and
 * after an hour in any case.
 */
export interface PlatformUpdates {
  /** 409 E_PLATFORM_UPDATING while an update is under way. Two processes that begin at once may both succeed: hold a lock. */
  begin(): Promise<void>
  /** Does nothing where this process has begun none. */
  abandon(): Promise<void>
}
/** For built-in plugins only: clients wait for the platform then. */
export const platformUpdates = service<PlatformUpdates>('platform.updates', { builtInOnly: true })
