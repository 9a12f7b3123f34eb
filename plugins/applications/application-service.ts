import { randomUUID } from 'node:crypto'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ProjectDirectory } from 'busbar/api/projects'
import {
  askContribution,
  type Clock,
  type Contributions,
  type Database,
  isUuid,
  type Log,
  type Page,
  type ProjectId,
  type Rows
} from 'busbar/sdk'
import { type BuildTypeSource, contributionLimitMs, type DeployHealth } from './api.js'
import type { ApplicationChanges, ApplicationStore, NewApplication } from './application-store.js'
import { buildTypesOf } from './build-types.js'
import { changeMarkers } from './change-markers.js'
import { latestHealth } from './deploy-health.js'
import { directUrls } from './direct-url.js'
import { type Gates, passGates } from './gates.js'
import { decideHealthCheck, initialHealthCheck } from './health-check.js'
import { invalid, problems } from './problems.js'
import { checkLimits, readCores } from './resource-limits.js'
import type {
  ApplicationAnswer,
  ApplicationRow,
  ChangeSourceBody,
  CreateBody,
  HealthCheckBody,
  ResourcesBody,
  RuntimeBody,
  UpdateBody,
  WebhookBody
} from './schemas.js'
import type { SealedFields } from './sealed-fields.js'
import { applicationSlug } from './slug.js'
import {
  decideRegistry,
  decideSource,
  decideSourceUpdate,
  decideToken,
  type RegistryChange,
  type TokenChange
} from './source.js'
import { parseBranch } from './source-text.js'

interface ApplicationServiceParts {
  readonly store: ApplicationStore
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly sealed: SealedFields
  readonly runtime: { get(): ContainerRuntime | undefined }
  readonly projects: ProjectDirectory
  readonly addresses: Contributions<{ directUrl(applicationId: string): string | null }>
  readonly gates: Gates
  readonly buildTypes: Contributions<BuildTypeSource>
  readonly deployHealth: Contributions<{ latest(applicationId: string): Promise<DeployHealth | null> }>
  readonly gitIntegrations: Contributions<{ mayUse(integrationId: string, userId: string): Promise<boolean> }>
}

const defaultPushBranch = 'main'
/** Of an application that has stored no secret yet, or none of its new source. */
const noSecrets = {
  source_repo: null,
  has_git_credentials: false,
  source_image: null,
  registry_username: null,
  has_registry_credentials: false
} as const
const neverDeployed = {
  deployment_id: null,
  deploy_status: null,
  status: 'pending',
  message: 'not deployed yet',
  checked_at: null
} as const

/** The rules about applications as records: what they are built from and how their containers are made. */
export class ApplicationService {
  readonly #directUrl: (applicationId: string) => string | null

  constructor(private readonly parts: ApplicationServiceParts) {
    this.#directUrl = directUrls(parts.addresses, parts.log)
  }

  async list(projectId: ProjectId, page: Page): Promise<Rows<ApplicationAnswer>> {
    const { rows, total } = await this.parts.store.list(projectId, page)
    return { rows: rows.map(row => this.#answer(row)), total }
  }

  /** Of the list: its rows, and the addresses that only this process knows. */
  async listVersion(projectId: ProjectId): Promise<string> {
    const { rows, ids } = await this.parts.store.listVersion(projectId)
    return [rows, ...(ids?.split(' ') ?? []).map(this.#directUrl)].join(' ')
  }

  async get(projectId: ProjectId, id: string): Promise<ApplicationAnswer> {
    return this.#answer((await this.parts.store.get(projectId, id)) ?? missing(id))
  }

  async create(projectId: ProjectId, body: CreateBody, userId: string): Promise<ApplicationAnswer> {
    const { store, db, clock, sealed, projects } = this.parts
    const id = randomUUID()
    const source = decideSource(body, buildTypesOf(this.parts.buildTypes, this.parts.log))
    await this.#checkLimits(body)
    const now = clock.now()
    const isGit = source.type === 'git'
    const fields: ApplicationChanges = {
      ...source,
      ...initialHealthCheck(body.health_check_path),
      ...this.#newSecrets(id, body),
      name: body.name,
      git_integration_id: isGit ? await this.#integration(body.git_integration_id ?? null, userId) : null,
      webhook_secret: sealed.newWebhookSecret(id),
      container_port: body.container_port ?? null,
      cpu_limit: body.cpu_limit ?? 0,
      memory_limit: body.memory_limit ?? 0
    }
    return await db.transaction(async tx => {
      const project = await projects.find(projectId, tx)
      if (project === undefined) throw problems.projectGone({ projectId })
      const slug = applicationSlug(project.slug, body.slug?.trim() || body.name, id)
      const application: NewApplication = {
        ...fields,
        id,
        project_id: projectId,
        slug,
        created_at: now,
        updated_at: now
      }
      await store.insert(application, tx)
      return this.#answer((await store.get(projectId, id, tx)) ?? missing(id))
    })
  }

  async update(
    projectId: ProjectId,
    id: string,
    body: UpdateBody,
    userId: string
  ): Promise<ApplicationAnswer> {
    const integration =
      body.git_integration_id === undefined
        ? {}
        : { git_integration_id: await this.#integration(body.git_integration_id, userId) }
    return await this.#change(projectId, id, current => ({
      ...(body.name !== undefined && { name: body.name }),
      ...decideSourceUpdate(current, body, buildTypesOf(this.parts.buildTypes, this.parts.log)),
      ...(current.type === 'git' && {
        ...integration,
        ...this.#tokenColumn(id, decideToken(current, body.source_repo?.trim(), body.git_token))
      }),
      ...(current.type === 'image' &&
        this.#registryColumns(id, decideRegistry(current, body.source_image?.trim(), body))),
      ...(body.container_port !== undefined && { container_port: body.container_port })
    }))
  }

  /** From git to image or back. Domains, volumes, variables, limits, deploy hook and history stay. */
  async changeSource(
    projectId: ProjectId,
    id: string,
    body: ChangeSourceBody,
    userId: string
  ): Promise<ApplicationAnswer> {
    const { store, sealed, gates, buildTypes, log } = this.parts
    const isGit = body.type === 'git'
    const integrationId = isGit ? await this.#integration(body.git_integration_id ?? null, userId) : null
    const decide = (current: ApplicationRow): ApplicationChanges => {
      if (current.type === body.type) throw problems.sameType({ type: body.type })
      return {
        ...decideSource(body, buildTypesOf(buildTypes, log)),
        git_integration_id: integrationId,
        git_token: null,
        registry_username: null,
        registry_password: null,
        ...this.#newSecrets(id, body),
        ...(isGit
          ? !current.has_webhook_secret && { webhook_secret: sealed.newWebhookSecret(id) }
          : { webhook_secret: null })
      }
    }
    // What is wrong with the request is said before what stands in its way.
    decide((await store.get(projectId, id)) ?? missing(id))
    await passGates(gates, id)
    if (await store.hasPreviews(projectId, id)) throw problems.hasPreviews()
    return await this.#change(projectId, id, decide)
  }

  async setHealthCheck(projectId: ProjectId, id: string, body: HealthCheckBody): Promise<ApplicationAnswer> {
    return await this.#change(projectId, id, () => decideHealthCheck(body))
  }

  async setResources(projectId: ProjectId, id: string, body: ResourcesBody): Promise<ApplicationAnswer> {
    await this.#checkLimits(body)
    return await this.#change(projectId, id, () => ({ ...body }))
  }

  async setRuntime(projectId: ProjectId, id: string, body: RuntimeBody): Promise<ApplicationAnswer> {
    return await this.#change(projectId, id, () => ({ ...body }))
  }

  async setWebhook(projectId: ProjectId, id: string, body: WebhookBody): Promise<ApplicationAnswer> {
    const { webhook_secret: secret, auto_deploy_branch: branch } = body
    return await this.#change(projectId, id, () => ({
      ...(typeof secret === 'string' && {
        webhook_secret: secret === '' ? null : this.parts.sealed.seal('webhook_secret', id, secret)
      }),
      ...(branch !== undefined && {
        auto_deploy_branch:
          branch === null ? null : (parseBranch(branch, 'auto_deploy_branch') ?? defaultPushBranch)
      })
    }))
  }

  async revealWebhookSecret(projectId: ProjectId, id: string): Promise<{ webhook_secret: string }> {
    const { store, sealed } = this.parts
    const { webhook_secret: secret } = (await store.secrets(projectId, id)) ?? missing(id)
    if (secret === null) throw problems.noWebhookSecret()
    return { webhook_secret: sealed.open('webhook_secret', id, secret) }
  }

  /** The health check of the latest deployment. */
  async health(projectId: ProjectId, id: string): Promise<DeployHealth | typeof neverDeployed> {
    await this.get(projectId, id)
    return (await latestHealth(this.parts.deployHealth, id, this.parts.log)) ?? neverDeployed
  }

  /** Decides from the locked row, and writes only what is to change. */
  async #change(
    projectId: ProjectId,
    id: string,
    decide: (current: ApplicationRow) => ApplicationChanges
  ): Promise<ApplicationAnswer> {
    const { store, db, clock } = this.parts
    return await db.transaction(async tx => {
      const current = (await store.hold(projectId, id, tx)) ?? missing(id)
      const changes = decide(current)
      if (Object.keys(changes).length === 0) return this.#answer(current)
      const now = clock.now()
      await store.update(
        projectId,
        id,
        { ...changes, ...changeMarkers(current, changes, now), updated_at: now },
        tx
      )
      return this.#answer((await store.get(projectId, id, tx)) ?? missing(id))
    })
  }

  /** Only where it matters is the engine asked what its machine has. */
  async #checkLimits(limits: ResourcesBody): Promise<void> {
    const cores = (limits.cpu_limit ?? 0) > 0 ? await readCores(this.parts.runtime.get()) : undefined
    checkLimits(limits, cores)
  }

  /** The secrets of a source that replaces another, or none. */
  #newSecrets(id: string, body: CreateBody | ChangeSourceBody): ApplicationChanges {
    return body.type === 'git'
      ? this.#tokenColumn(id, decideToken(noSecrets, undefined, body.git_token))
      : this.#registryColumns(id, decideRegistry(noSecrets, undefined, body))
  }

  #registryColumns(id: string, change: RegistryChange): ApplicationChanges {
    switch (change.kind) {
      case 'keep':
        return {}
      case 'drop':
        return { registry_username: null, registry_password: null }
      case 'rename':
        return { registry_username: change.username }
      case 'set':
        return {
          registry_username: change.username,
          registry_password: this.parts.sealed.seal('registry_password', id, change.password)
        }
    }
  }

  #tokenColumn(id: string, change: TokenChange): ApplicationChanges {
    switch (change.kind) {
      case 'keep':
        return {}
      case 'drop':
        return { git_token: null }
      case 'set':
        return { git_token: this.parts.sealed.seal('git_token', id, change.token) }
    }
  }

  /** An id in a body must be one the caller may use: otherwise it would reach past a pin. */
  async #integration(id: string | null, userId: string): Promise<string | null> {
    if (id === null || id === '') return null
    const integrations = isUuid(id) ? this.parts.gitIntegrations.entries() : []
    for (const { value, plugin } of integrations) {
      if (
        (await askContribution(() => value.mayUse(id, userId), {
          ms: contributionLimitMs,
          what: `the git integrations of the plugin "${plugin}"`
        })) === true
      )
        return id
    }
    throw invalid('git_integration_id', 'names no git integration that you may use')
  }

  /** Adds to the row itself: a list has many, of many fields. */
  #answer(row: ApplicationRow): ApplicationAnswer {
    return Object.assign(row, { direct_url: this.#directUrl(row.id) })
  }
}

function missing(applicationId: string): never {
  throw problems.notFound({ applicationId })
}
