import type { Bus, Clock, Database, Events, Jobs, Tx } from 'busbar/sdk'
import { type DeploymentStatus, deploymentFinished } from '../api.js'
import type { FollowUpStore } from '../queue/follow-up-store.js'
import { Cancelled, cancelledReason } from '../rollout/deploy-failure.js'
import type { Deployment } from '../schemas.js'
import { buildLogChannel } from './build-log.js'
import { buildStepsChannel } from './build-steps.js'
import type { DeploymentCounts } from './deployment-counts.js'
import { type DeploymentProgress, endsBuild, nextDeploymentState, statesBefore } from './deployment-state.js'
import type { DeploymentChanges, DeploymentRow, DeploymentStore, NewDeployment } from './deployment-store.js'

export const deployJob = 'deploy'
export interface DeployPayload {
  readonly deploymentId: string
}
/** Deploys of one application never overlap. */
export const queueOf = (applicationId: string): string => `deploy:${applicationId}`

interface DeploymentRecordParts {
  readonly db: Database
  readonly store: DeploymentStore
  readonly followUps: FollowUpStore
  readonly jobs: Jobs
  readonly events: Events
  readonly bus: Bus
  readonly clock: Clock
  readonly counts: DeploymentCounts
  /** Called after the commit in which a build has ended. */
  readonly onBuildEnded?: () => void
  /** Called after the commit in which a deployment has ended. */
  readonly onEnded?: () => void
}

/** Why a deployment ended without success, as the record keeps it. */
interface FailureRecord {
  readonly message: string
  readonly remedy: string | null
  readonly evidence: string | null
}

/** The life of the records: made with their job, moved only as the states allow, ended with an event. */
export class DeploymentRecords {
  readonly #parts: DeploymentRecordParts
  constructor(parts: DeploymentRecordParts) {
    this.#parts = parts
  }

  /** Undefined while another one of the application is active. */
  async create(deployment: NewDeployment, tx: Tx): Promise<Deployment | undefined> {
    const row = await this.#parts.store.insert(deployment, tx)
    if (row !== undefined) await this.enqueue(deployment.id, deployment.applicationId, tx)
    return row
  }

  /** A job that waits already is replaced; one that runs is waited for, and finds nothing left to do. */
  async enqueue(deploymentId: string, applicationId: string, tx?: Tx): Promise<void> {
    const payload: DeployPayload = { deploymentId }
    await this.#parts.jobs.enqueue(
      deployJob,
      payload,
      { queue: queueOf(applicationId), key: deploymentId },
      tx
    )
  }

  async beginBuild(id: string, changes: DeploymentChanges): Promise<DeploymentRow> {
    return await this.#advance(id, 'buildBegan', changes)
  }

  /** The build is over; `done` goes out when this is committed. */
  async beginRollout(id: string, changes: DeploymentChanges): Promise<DeploymentRow> {
    return await this.#advance(id, 'rolloutBegan', changes)
  }

  async succeed(id: string, changes: DeploymentChanges, tx: Tx): Promise<void> {
    const moved = await this.#move(id, 'succeeded', { ...changes, error_message: null }, tx)
    if (moved === undefined) throw new Error(`deployment ${id} has ended before it could succeed`)
  }

  /** False when it had ended already. */
  async fail(id: string, failure: FailureRecord, changes: DeploymentChanges = {}): Promise<boolean> {
    const { db, clock } = this.#parts
    return await db.transaction(async tx => {
      const now = clock.now()
      const ended = {
        error_message: failure.message,
        remedy: failure.remedy,
        evidence: failure.evidence,
        waiting_for: null,
        finished_at: now
      }
      const moved = await this.#move(id, 'failed', { ...changes, ...ended }, tx)
      if (moved?.row.build_started_at !== null && moved?.row.build_ended_at === null) {
        await this.#parts.store.change(id, { build_ended_at: now }, tx)
      }
      return moved !== undefined
    })
  }

  /** Ends one that no process has begun to work on; false when one has, or it has ended. */
  async cancelPending(id: string): Promise<boolean> {
    const { db, clock } = this.#parts
    return await db.transaction(async tx => {
      const moved = await this.#move(
        id,
        'failed',
        { error_message: cancelledReason, waiting_for: null, finished_at: clock.now() },
        tx,
        ['pending']
      )
      return moved !== undefined
    })
  }

  async #advance(
    id: string,
    progress: DeploymentProgress,
    changes: DeploymentChanges
  ): Promise<DeploymentRow> {
    const moved = await this.#parts.db.transaction(async tx => await this.#move(id, progress, changes, tx))
    // Only a cancel ends it from outside, in the moment in which its job begins.
    if (moved === undefined) throw new Cancelled()
    return moved.row
  }

  async #move(
    id: string,
    progress: DeploymentProgress,
    changes: DeploymentChanges,
    tx: Tx,
    from = statesBefore(progress)
  ): Promise<{ row: DeploymentRow; was: DeploymentStatus } | undefined> {
    const { store, events, db, bus, clock, counts, onBuildEnded, onEnded } = this.#parts
    const to = from[0] === undefined ? undefined : nextDeploymentState(from[0], progress)
    if (to === undefined) return undefined
    const moved = await store.move(id, from, to, changes, tx)
    if (moved === undefined) return undefined
    if (endsBuild(moved.was, to)) {
      db.afterCommit(tx, () => {
        for (const channel of [buildLogChannel(id), buildStepsChannel(id)]) bus.publish(channel, 'done', null)
        counts.buildEnded(moved.row, to, clock.now())
        onBuildEnded?.()
      })
    }
    if (to === 'success' || to === 'failed') {
      const { application_id: applicationId, project_id: projectId, kind, error_message: error } = moved.row
      db.afterCommit(tx, () => {
        counts.deploymentEnded(moved.row, to, clock.now())
        onEnded?.()
      })
      await events.emit(
        deploymentFinished,
        {
          deploymentId: id,
          applicationId,
          projectId,
          status: to,
          kind,
          application: (await store.nameOfApplication(applicationId, tx)) ?? '',
          isCancelled: error === cancelledReason,
          error
        },
        tx
      )
      await this.#followUp(moved.row, tx)
    }
    return moved
  }

  /** The push that came while this one was under way is deployed now. */
  async #followUp(ended: DeploymentRow, tx: Tx): Promise<void> {
    const trigger = await this.#parts.followUps.take(ended.application_id, tx)
    if (trigger === undefined) return
    await this.create(
      {
        id: crypto.randomUUID(),
        projectId: ended.project_id,
        applicationId: ended.application_id,
        kind: 'deploy',
        originId: null,
        trigger,
        idempotencyKey: null,
        imageTag: null,
        commit: { sha: null, message: null, author: null },
        startedAt: this.#parts.clock.now()
      },
      tx
    )
  }
}
