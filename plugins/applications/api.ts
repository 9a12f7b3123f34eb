import { isIPv6 } from 'node:net'
import { event, extensionPoint, publishedTable, type ResourceTeardown, service, type Tx } from 'busbar/sdk'

/** The project rule of routes below `/api/projects/:projectId/applications/:applicationId`: that application, in that project. */
export const inApplication = { param: 'projectId', chain: { applicationId: 'application' } } as const

/** What the container of an application does. */
export const applicationStatuses = ['inactive', 'running', 'stopped', 'error', 'unhealthy'] as const
export type ApplicationStatus = (typeof applicationStatuses)[number]
export type ContainerCaps = 'minimal' | 'standard'

export type ApplicationSource =
  | {
      readonly type: 'git'
      readonly repo: string
      readonly branch: string | null
      readonly token: string | null
      /** The git integration to clone with, where no token is stored. */
      readonly integrationId?: string
      /** Relative to the repository's root; '' is the root. */
      readonly rootDirectory: string
      /** Relative to the root directory. */
      readonly dockerfilePath: string
      /** The stage of it that becomes the image, by name or number; absent: the last one. */
      readonly target?: string
      /** What kind of machine the image is made for, `linux/arm64`; absent: the one that runs it. */
      readonly platform?: string
    }
  | {
      readonly type: 'image'
      readonly image: string
      /** The account to pull with; absent: anonymously. It belongs to the registry that `image` names. */
      readonly registry?: { readonly username: string; readonly password: string }
    }

export type HealthCheck =
  | { readonly type: 'none' }
  | {
      readonly type: 'http'
      readonly path: string
      /** 0 means any 2xx. */
      readonly expectStatus: number
      /** The whole window. */
      readonly windowSeconds: number
    }
  | {
      readonly type: 'command'
      readonly command: string
      readonly intervalSeconds: number
      readonly retries: number
      readonly startPeriodSeconds: number
      readonly timeoutSeconds: number
    }

/** Everything a deploy needs to know of an application, read in one statement, secrets in clear. */
export interface DeployableApplication {
  readonly id: string
  readonly projectId: string
  readonly projectSlug: string
  readonly name: string
  /** The full slug: the running container's name. */
  readonly slug: string
  readonly status: ApplicationStatus
  /** The deployment whose container is the running one; null before the first success. */
  readonly containerDeploymentId: string | null
  readonly source: ApplicationSource
  /** The override where there is one: the key of a builder, or `image`. Its builder may be off. */
  readonly buildType: string
  /** For buildpacks; null: the builder's default. */
  readonly builderImage: string | null
  /** URIs of buildpacks, in order; empty: detected. */
  readonly customBuildpacks: readonly string[]
  /** null: not known before the image is (its EXPOSE, else 8080). */
  readonly containerPort: number | null
  /** The words to start instead of the image's CMD; null: its own. */
  readonly startCommand: readonly string[] | null
  /** Cores; 0 = no limit. */
  readonly cpuLimit: number
  /** Bytes; 0 = no limit. */
  readonly memoryLimit: number
  readonly healthCheck: HealthCheck
  readonly containerCaps: ContainerCaps
  readonly readonlyRootfs: boolean
}

/** All applications, with those that are being deleted. Foreign keys to it are `on delete restrict`. */
export const applicationTable = publishedTable('applications.application', {
  key: 'id',
  columns: {
    id: 'uuid',
    project_id: 'uuid',
    name: 'text',
    /** The full slug, unique on the instance: the running container's name. */
    slug: 'text',
    /** An `ApplicationStatus`. */
    status: 'text',
    /** The deployment whose container is the running one; null before the first success. */
    container_deployment_id: 'uuid null',
    /** null: not known before the image is. */
    container_port: 'integer null',
    /** When its removal was asked for; null while it is there for users. */
    deleting_at: 'timestamptz null'
  }
})

export interface ApplicationRegistry {
  /** Undefined when it does not exist or is being deleted. */
  deployable(applicationId: string): Promise<DeployableApplication | undefined>
  /**
   * A successful deploy: running, its times set, change markers older than `startedAt` cleared (only the
   * `config` one when nothing was built or pulled: `rebuilt: false`), the project's last deploy noted.
   * From then on the status follows the container of `deploymentId` and of no other.
   */
  recordDeployed(applicationId: string, deploy: DeployRecord, tx: Tx): Promise<void>
  /** Writes a changed status and publishes it on the `container-status` channel; does nothing when it is the same. */
  setStatus(applicationId: string, status: ApplicationStatus): Promise<void>
  /** What another plugin's check of its container has shown. Does nothing once another deployment's container counts. */
  followHealth(applicationId: string, deploymentId: string, health: 'healthy' | 'unhealthy'): Promise<void>
  /** Something that a reload applies has changed: `pending_change` becomes `config` (once it was deployed). */
  markConfigChanged(applicationId: string, tx: Tx): Promise<void>
  /** The `deploy_hook_enabled` of the answers; the hook itself is kept by its plugin. */
  setDeployHookEnabled(applicationId: string, enabled: boolean, tx: Tx): Promise<void>
}
export const applicationRegistry = service<ApplicationRegistry>('applications.registry')

export interface DeployRecord {
  readonly deploymentId: string
  readonly startedAt: Date
  readonly finishedAt: Date
  readonly rebuilt: boolean
}

/** How long an operation waits for what another plugin contributes to it; then it fails and names the plugin. */
export const contributionLimitMs = 20_000

/** For a plugin that works on what an application uses while that stands still. */
export interface ApplicationControl {
  /** Why it must not be stopped or started now, by the gates of all plugins but this one; null where it may. */
  refusal(applicationId: string, besides: string): Promise<string | null>
  /** Stops the container that serves, as a person does, whatever the gates say. False where none runs. */
  stop(applicationId: string): Promise<boolean>
  /** Starts it again. Does nothing where it runs, or is gone. */
  start(applicationId: string): Promise<void>
}
export const applicationControl = service<ApplicationControl>('applications.control')

/** Says why an application must not be started, stopped, restarted or get another source now (a deploy is active); null when it may. */
export const applicationGates = extensionPoint<{ refuses(applicationId: string): Promise<string | null> }>(
  'applications.gates'
)

/** Who builds says what a git application's `build_type` may be; `image` is left out. Without any, the contract's own are taken. */
export interface BuildTypeSource {
  buildTypes(): readonly string[]
}
export const applicationBuildTypes = extensionPoint<BuildTypeSource>('applications.buildTypes')

/** Adds the `direct_url` to an application's answer; asked once per row, so it answers from memory. */
export const applicationAddresses = extensionPoint<{ directUrl(applicationId: string): string | null }>(
  'applications.addresses'
)

/**
 * Told after a person started or stopped the application's container, so that what points at it can
 * follow: its address may have changed. A restart is one `stopped` and one `started`.
 */
export interface ApplicationLifecycle {
  started(applicationId: string, containerId: string): Promise<void>
  stopped(applicationId: string): Promise<void>
}
export const applicationLifecycle = extensionPoint<ApplicationLifecycle>('applications.lifecycle')

/** The health check of the latest deployment, as `GET …/health` answers it; null before the first. */
export interface DeployHealth {
  readonly deployment_id: string
  readonly deploy_status: 'pending' | 'building' | 'deploying' | 'success' | 'failed'
  readonly status: 'pending' | 'passing' | 'failing' | 'skipped'
  readonly message: string | null
  readonly checked_at: Date | string | null
}
export const applicationDeployHealth = extensionPoint<{
  latest(applicationId: string): Promise<DeployHealth | null>
}>('applications.deployHealth')

/** Whether a user may clone with a git integration; asked before its id is stored. None: no id is accepted. */
export const applicationGitIntegrations = extensionPoint<{
  mayUse(integrationId: string, userId: string): Promise<boolean>
}>('applications.gitIntegrations')

/** What a plugin removes of an application that is being deleted; of each one of a deleted project too. */
export const applicationTeardown = extensionPoint<ResourceTeardown>('applications.teardown')

/**
 * The running container of an application has ended with an error, or does not pass its health check any more. Not told is
 * what a stop or a restart that somebody has asked for looks like; and of an application either one comes at most once an
 * hour until it is deployed again, as a container that is started anew may crash for ever.
 */
export const applicationFailed = event<{
  readonly applicationId: string
  readonly projectId: string
  /** What it is called. */
  readonly application: string
  readonly status: 'error' | 'unhealthy'
}>('applications.failed')

export const applicationDeleted = event<{ readonly applicationId: string; readonly projectId: string }>(
  'applications.deleted'
)

/** A repository that is read over SSH, in either of the forms that git takes. */
export interface SshRepository {
  /** As git is told it: nothing in it can be mistaken for an option, by git, by ssh or by a shell. */
  readonly url: string
  readonly user: string
  /** In lower case; an address of IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

/** `git@host:owner/repository.git`. */
const scpForm =
  /^(?<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})@(?<host>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):(?<path>.+)$/s
/** `ssh://git@host:2222/owner/repository.git`; without a user it is `git`. */
const urlForm =
  /^ssh:\/\/(?:(?<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})@)?(?<host>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::(?<port>\d{1,5}))?(?<path>\/.+)$/s
/** Hosts of repositories write spaces as `%20`. */
const segmentForm = /^[A-Za-z0-9._~+@%=,][A-Za-z0-9._~+@%=,-]*$/

/** Undefined when it is none, or holds what no host of repositories uses: `-` in front, blanks, quotes, `..`. */
export function parseSshRepository(text: string): SshRepository | undefined {
  if (text.length > 2000) return undefined
  const isUrl = /^ssh:\/\//i.test(text)
  const found = (isUrl ? urlForm : scpForm).exec(isUrl ? `ssh${text.slice(3)}` : text)?.groups
  if (found === undefined) return undefined
  const { host: written = '', path: whole = '', port: portText = '22', user: name = 'git' } = found
  const host = written.toLowerCase()
  const path = whole.replace(/(?<!\/)\/+$/, '')
  const port = Number(portText)
  // git takes escapes of a URL apart, and ssh would get what they stand for.
  const isGood =
    port >= 1 &&
    port <= 65_535 &&
    (!host.startsWith('[') || isIPv6(host.slice(1, -1))) &&
    !(isUrl && path.includes('%')) &&
    path.replace(/^\//, '').split('/').every(isSegment)
  if (!isGood) return undefined
  return {
    url: isUrl ? `ssh://${name}@${host}${port === 22 ? '' : `:${port}`}${path}` : `${name}@${host}:${path}`,
    user: name,
    host: host.replace(/^\[|\]$/g, ''),
    port
  }
}

const isSegment = (segment: string): boolean =>
  segmentForm.test(segment) && segment !== '.' && segment !== '..'
