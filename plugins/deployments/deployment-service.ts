import { randomUUID } from 'node:crypto'
import type { ApplicationRegistry, DeployableApplication, DeployHealth } from 'busbar/api/applications'
import type { PreparedImages } from 'busbar/api/builds'
import type { Bus, Clock, Database, Page, Reach, Rows } from 'busbar/sdk'
import type { DeploymentKind, DeploymentQueue, Trigger } from './api.js'
import { problems } from './problems.js'
import type { FollowUpStore } from './queue/follow-up-store.js'
import { readBuildLog } from './records/build-log.js'
import type { GlobalFilter } from './records/deployment-filter.js'
import type { DeploymentLogStore } from './records/deployment-log-store.js'
import type { DeploymentRecords } from './records/deployment-records.js'
import type { DeploymentRow, DeploymentStore } from './records/deployment-store.js'
import type { GlobalDeploymentStore } from './records/global-deployment-store.js'
import { listedLogs, logEndBytes } from './records/log-end.js'
import { cancelTopic } from './rollout/cancel-watch.js'
import { uncancellable } from './rollout/rollout.js'
import type { Deployment, GlobalDeployment } from './schemas.js'

interface DeploymentServiceParts {
  readonly db: Database
  readonly store: DeploymentStore
  readonly all: Pick<GlobalDeploymentStore, 'list'>
  readonly logs: DeploymentLogStore
  readonly records: DeploymentRecords
  readonly followUps: FollowUpStore
  readonly registry: ApplicationRegistry
  readonly prepared: Pick<PreparedImages, 'find'>
  readonly bus: Bus
  readonly clock: Clock
}

/** What is asked for, before the application is looked at. */
interface Request {
  readonly kind: DeploymentKind
  readonly trigger: Trigger
  readonly idempotencyKey?: string
  /** The deployment whose image or commit is used again. */
  readonly origin?: DeploymentRow
}

/** The rules about deployments: which may begin, which can be cancelled, what is shown of them. */
export class DeploymentService {
  readonly #parts: DeploymentServiceParts
  constructor(parts: DeploymentServiceParts) {
    this.#parts = parts
  }

  async deploy(applicationId: string, trigger: Trigger, idempotencyKey?: string): Promise<Deployment> {
    return await this.#begin(await this.#application(applicationId), {
      kind: 'deploy',
      trigger,
      idempotencyKey
    })
  }

  async build(applicationId: string, trigger: Trigger, idempotencyKey?: string): Promise<Deployment> {
    return await this.#begin(await this.#application(applicationId), {
      kind: 'build',
      trigger,
      idempotencyKey
    })
  }

  /** The container anew, with today's settings, from the image that was rolled out last. */
  async reload(applicationId: string): Promise<Deployment> {
    const application = await this.#application(applicationId)
    const origin = await this.#parts.store.lastRolledOut(application.projectId, applicationId)
    if (origin === undefined) throw problems.nothingToReload({ name: application.name })
    await this.#requireImage(origin)
    return await this.#begin(application, { kind: 'reload', trigger: 'reload', origin })
  }

  async rebuild(applicationId: string): Promise<Deployment> {
    const application = await this.#application(applicationId)
    if (application.source.type === 'image') throw problems.imageSourceRebuild({ name: application.name })
    const origin = await this.#parts.store.lastWithCommit(application.projectId, applicationId)
    if (origin === undefined) throw problems.noCommit({ name: application.name })
    return await this.#begin(application, { kind: 'rebuild', trigger: 'rebuild', origin })
  }

  async rollBack(applicationId: string, deploymentId: string): Promise<Deployment> {
    const application = await this.#application(applicationId)
    const origin = await this.#parts.store.row(deploymentId)
    if (origin?.application_id !== applicationId) throw problems.rollbackForeign({ deploymentId })
    if (origin.status !== 'success')
      throw problems.rollbackUnsuccessful({ deploymentId, status: origin.status })
    await this.#requireImage(origin)
    return await this.#begin(application, { kind: 'rollback', trigger: 'rollback', origin })
  }

  async get(projectId: string, id: string): Promise<Deployment> {
    const { store, logs } = this.#parts
    const deployment = await store.get(projectId, id)
    if (deployment === undefined) throw problems.deploymentMissing({ deploymentId: id })
    return { ...deployment, build_logs: await readBuildLog(logs, id) }
  }

  async list(projectId: string, applicationId: string, page: Page): Promise<Rows<Deployment>> {
    const { store, logs } = this.#parts
    const found = await store.list(projectId, applicationId, page)
    if (found.rows.length === 0 && (await store.projectOfApplication(applicationId)) === undefined)
      throw problems.applicationMissing({ applicationId })
    const shown = found.rows.slice(0, Math.max(0, listedLogs - page.offset)).map(({ id }) => id)
    if (shown.length === 0) return found
    const ends = await logs.ends(shown, logEndBytes)
    return { ...found, rows: found.rows.map(row => ({ ...row, build_logs: ends.get(row.id) ?? null })) }
  }

  async listVersion(projectId: string, applicationId: string): Promise<string | undefined> {
    return await this.#parts.store.listVersion(projectId, applicationId)
  }

  /** Explicit ids are checked as the guard checks one from the path. */
  async listAll(
    filter: GlobalFilter,
    page: Page,
    caller: { readonly reach: Reach; readonly requireProject: (projectId: string) => Promise<unknown> }
  ): Promise<Rows<GlobalDeployment>> {
    const { store, all } = this.#parts
    if (filter.projectId !== undefined) await caller.requireProject(filter.projectId)
    if (filter.applicationId !== undefined) {
      const projectId = await store.projectOfApplication(filter.applicationId)
      // As for one that the caller may not see: the answer does not tell the two apart.
      if (projectId === undefined) throw problems.unseen()
      await caller.requireProject(projectId)
    }
    return await all.list(caller.reach, filter, page)
  }

  /** What waits ends at once; what is under way reads the request from its row, and ends soon after. */
  async cancel(projectId: string, id: string): Promise<Deployment> {
    const { store, records, clock, bus } = this.#parts
    if (!(await records.cancelPending(id))) {
      if (!(await store.requestCancel(projectId, id, uncancellable, clock.now())))
        throw await this.#whyNotCancelled(projectId, id)
    }
    // For a pending one too: a process may have begun to work on it, and wait for a gate.
    await bus.signal(cancelTopic, id)
    const deployment = await store.get(projectId, id)
    if (deployment === undefined) throw problems.deploymentMissing({ deploymentId: id })
    return deployment
  }

  async #whyNotCancelled(projectId: string, id: string): Promise<Error> {
    const deployment = await this.#parts.store.get(projectId, id)
    if (deployment === undefined) return problems.deploymentMissing({ deploymentId: id })
    const hasEnded = deployment.status === 'success' || deployment.status === 'failed'
    return hasEnded
      ? problems.notActive({ deploymentId: id, status: deployment.status })
      : problems.tooLate({ deploymentId: id })
  }

  /** Why the application must be left alone now; null when it may be touched. */
  async refuses(applicationId: string): Promise<string | null> {
    const active = await this.#parts.store.activeOf(applicationId)
    return active === undefined
      ? null
      : 'a deployment is in progress for this application: wait for it, or cancel it'
  }

  async latestHealth(applicationId: string): Promise<DeployHealth | null> {
    const latest = await this.#parts.store.latestOf(applicationId)
    if (latest === undefined) return null
    const {
      id,
      status: deployStatus,
      health_status: status,
      health_message: message,
      health_checked_at: checkedAt
    } = latest
    const answer = { deployment_id: id, deploy_status: deployStatus, checked_at: checkedAt }
    if (status === 'passing' || status === 'failing' || status === 'skipped')
      return { ...answer, status, message }
    // One that has ended is not checked any more: a caller that waits for the result would wait for ever.
    return deployStatus === 'failed'
      ? { ...answer, status: 'skipped', message: 'the deployment failed before its health could be checked' }
      : { ...answer, status: 'pending', message }
  }

  readonly queue: DeploymentQueue = {
    deploy: async (applicationId, trigger) => ({
      deploymentId: (await this.deploy(applicationId, trigger)).id
    }),
    deploySoon: async (applicationId, trigger) => {
      const application = await this.#application(applicationId)
      requireSource(application)
      const deployment = await this.#insert(application, { kind: 'deploy', trigger }, true)
      return deployment === undefined ? null : { deploymentId: deployment.id }
    }
  }

  async #begin(application: DeployableApplication, request: Request): Promise<Deployment> {
    requireSource(application)
    const deployment = await this.#insert(application, request, false)
    if (deployment === undefined) throw problems.active()
    return deployment
  }

  async #insert(
    application: DeployableApplication,
    { kind, trigger, idempotencyKey, origin }: Request,
    mayFollowUp: boolean
  ): Promise<Deployment | undefined> {
    const { db, records, followUps, clock } = this.#parts
    return await db.transaction(async tx => {
      const deployment = await records.create(
        {
          id: randomUUID(),
          projectId: application.projectId,
          applicationId: application.id,
          kind,
          originId: origin?.id ?? null,
          trigger,
          idempotencyKey: idempotencyKey ?? null,
          imageTag: kind === 'rebuild' ? null : (origin?.image_tag ?? null),
          commit: {
            sha: origin?.commit_sha ?? null,
            message: origin?.commit_message ?? null,
            author: origin?.commit_author ?? null
          },
          startedAt: clock.now()
        },
        tx
      )
      if (deployment === undefined && mayFollowUp)
        await followUps.put(application.id, trigger, clock.now(), tx)
      return deployment
    })
  }

  async #application(applicationId: string): Promise<DeployableApplication> {
    const application = await this.#parts.registry.deployable(applicationId)
    if (application === undefined) throw problems.applicationMissing({ applicationId })
    return application
  }

  async #requireImage({ id, application_id: applicationId, image_tag: image }: DeploymentRow): Promise<void> {
    if (image === null) throw problems.rollbackNoImage({ deploymentId: id })
    if ((await this.#parts.prepared.find(applicationId, image)) === undefined)
      throw problems.imageGone({ image, deploymentId: id })
  }
}

function requireSource({ name, source }: DeployableApplication): void {
  if (source.type === 'git' && source.repo === '') throw problems.noSource({ name, field: 'source_repo' })
  if (source.type === 'image' && source.image === '') throw problems.noSource({ name, field: 'source_image' })
}
