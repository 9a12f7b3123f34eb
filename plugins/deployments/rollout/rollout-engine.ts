import { askContribution, type Bus, type JobContext, withTimeLimit } from 'busbar/sdk'
import { hookLimitMs, type RolloutBoundary, type RolloutStepName } from '../api.js'
import { enqueueCleanup } from '../cleanup.js'
import { BuildDeferred } from '../queue/build-queue.js'
import { type BuildLog, openBuildLog } from '../records/build-log.js'
import type { BuildStepStore } from '../records/build-step-store.js'
import { BuildSteps } from '../records/build-steps.js'
import type { DeploymentLogStore } from '../records/deployment-log-store.js'
import type { DeploymentChanges, DeploymentRow } from '../records/deployment-store.js'
import { watchCancel } from './cancel-watch.js'
import { retryDuringOutage } from './database-outage.js'
import { Cancelled, DeployFailure, failureOf, isExpected } from './deploy-failure.js'
import {
  type Created,
  type Rollout,
  type RolloutTools,
  type Switched,
  uncancellable,
  type WithImage
} from './rollout.js'
import { type RolloutSteps, rolloutSteps } from './rollout-steps.js'
import { enqueueReconcile } from './serving-reconciler.js'
import { endOf } from './step-end.js'
import type { Boundaries } from './step-sequence.js'
import { removeContainers } from './steps/container.js'
import { switchTrafficBack } from './steps/switch.js'

const maxMessage = 4000

interface EngineParts extends RolloutTools {
  readonly bus: Bus
  readonly logs: DeploymentLogStore
  readonly steps: BuildStepStore
  /** How long one deployment may take; for the sentence that says so. */
  readonly timeoutMs: number
}

/** What ends a deployment before it has succeeded or failed by itself. */
interface Ends {
  readonly cancel: AbortSignal
  readonly job: AbortSignal
  /** The reason of its signal when it has taken too long. */
  readonly late: DeployFailure
}

/** Runs deployments: step by step, rolled back when a step fails, resumed after a crash. */
export class RolloutEngine {
  readonly #parts: EngineParts
  readonly #steps: RolloutSteps
  /** What goes on in the background, each with its end: who waits on a signal that all share adds up on it. */
  readonly #background = new Map<AbortController, Promise<void>>()
  #stopped: Error | undefined
  readonly #running = new Map<string, Promise<void>>()

  constructor(parts: EngineParts) {
    this.#parts = parts
    this.#steps = rolloutSteps(parts)
  }

  /** The job. One that has ended only gets a cleanup; nothing is done for one that is gone. */
  async run(deploymentId: string, { signal }: Pick<JobContext, 'signal'>): Promise<void> {
    // While the database is unreachable, the lock that shows this process to be alive is lost.
    const running = this.#running.get(deploymentId)
    if (running !== undefined) return await running
    const work = this.#run(deploymentId, signal).finally(() => {
      this.#running.delete(deploymentId)
    })
    this.#running.set(deploymentId, work)
    await work
  }

  async #run(deploymentId: string, signal: AbortSignal): Promise<void> {
    const { store, clock, turns } = this.#parts
    const deployment = await store.begin(deploymentId, clock.now())
    if (deployment === undefined) {
      // Its process may have crashed, or lost the database, just when it ended.
      const ended = await store.ownerOf(deploymentId)
      if (ended !== undefined) await enqueueCleanup(this.#parts, ended.application_id)
      return
    }
    // While it is pending nothing has been made, however many processes have crashed since.
    if (deployment.runs > 1 && deployment.status !== 'pending') return await this.#resume(deployment, signal)
    if (!(await retryDuringOutage(async () => await turns.take(deploymentId), { clock, signal }))) return
    const { deploy, build } = this.#steps
    const steps = deployment.kind === 'build' ? build : deploy
    await this.#rollOut(
      deployment,
      signal,
      async (rollout, boundaries) => await steps.run(rollout, boundaries)
    )
  }

  /** `steps` come before the record. */
  async #rollOut(
    deployment: DeploymentRow,
    jobSignal: AbortSignal,
    steps: (rollout: Rollout, boundaries: Boundaries) => Promise<WithImage | Switched>
  ): Promise<void> {
    const { clock, timeoutMs } = this.#parts
    const cancel = watchCancel(deployment.id, this.#parts)
    const late = new DeployFailure(
      `the deploy took longer than ${Math.round(timeoutMs / 60_000)} minutes`,
      'make the build faster, or raise TASK_TIMEOUT_MINUTES'
    )
    await withTimeLimit(
      {
        signal: AbortSignal.any([jobSignal, cancel.signal]),
        ms: timeoutMs,
        reason: () => late,
        clock
      },
      async signal =>
        await this.#attempt(
          this.#open(deployment, signal),
          { cancel: cancel.signal, late, job: jobSignal },
          steps
        )
    ).finally(cancel.stop)
  }

  async #attempt(
    rollout: Rollout,
    ends: Ends,
    steps: (rollout: Rollout, boundaries: Boundaries) => Promise<WithImage | Switched>
  ): Promise<void> {
    const { deployment } = rollout
    const jobSignal = ends.job
    let reached: RolloutStepName | undefined
    let done: WithImage | Switched | undefined
    const boundaries: Boundaries = {
      before: async (step, state) => await this.#enter(state, step, jobSignal),
      note: async (step, state) => {
        await this.#note(state, step, jobSignal)
        reached = step
      },
      after: async (step, state) => {
        if (step !== 'record')
          await this.#pass(`after ${step}`, state, this.#signalAt(step, rollout, jobSignal))
      },
      ends: async (step, state, work) =>
        await this.#ends(step, deployment.id, work, this.#signalAt(step, state, jobSignal))
    }
    try {
      done = await steps(rollout, boundaries)
      await this.#steps.record.run(done, boundaries)
    } catch (error) {
      // Nothing has been made yet; it begins anew when it is admitted.
      if (error instanceof BuildDeferred) return
      const reason = this.#reason(error, rollout.signal, ends)
      // Nothing can be undone without the record, which also shows whether a commit succeeded whose answer was lost.
      const { clock, store } = this.#parts
      const row = await retryDuringOutage(async () => await store.row(deployment.id), {
        clock,
        signal: jobSignal
      })
      const isRecorded = reached === 'record' && row?.status === 'success'
      if (!isRecorded) return await this.#rollBack(rollout, reached, reason, jobSignal)
    } finally {
      await this.#close(rollout)
    }
    if (done !== undefined && 'drain' in done) this.#finishInBackground(done)
  }

  /**
   * Drains and cleans up in the background: the deployment is a success already, and the
   * next one need not wait. What is missed, at a shutdown for example, is found at the next start.
   */
  #finishInBackground(rollout: Switched): void {
    const { log } = this.#parts
    const end = new AbortController()
    if (this.#stopped !== undefined) end.abort(this.#stopped)
    const later: Switched = { ...rollout, signal: end.signal }
    const boundaries: Boundaries = {
      before: async (step, state) => {
        later.signal.throwIfAborted()
        await this.#pass(`before ${step}`, state, later.signal)
      },
      note: async () => {},
      after: async (step, state) => {
        await this.#pass(`after ${step}`, state, later.signal)
      },
      ends: async (step, state, work) => await this.#ends(step, state.deployment.id, work, later.signal)
    }
    const work = (async () => {
      try {
        await this.#pass('after record', later, later.signal)
        await this.#steps.finish.run(later, boundaries)
      } catch (error) {
        if (later.signal.aborted) return
        log.warn(
          { err: error, deploymentId: rollout.deployment.id },
          'the new version serves, but not all of the old one is cleaned up yet'
        )
        await enqueueCleanup(this.#parts, rollout.deployment.application_id)
      }
    })()
      .catch((error: unknown) => {
        log.error(
          { err: error, deploymentId: rollout.deployment.id },
          'what is left of the old version is cleaned up at the next start'
        )
      })
      .finally(() => {
        this.#background.delete(end)
      })
    this.#background.set(end, work)
  }

  /** Ends the background work. */
  async stop(): Promise<void> {
    this.#stopped = new Error('the plugin is stopping')
    for (const end of this.#background.keys()) end.abort(this.#stopped)
    await Promise.all(this.#background.values())
  }

  async #ends<T>(
    step: RolloutStepName,
    deploymentId: string,
    work: Promise<T>,
    signal: AbortSignal
  ): Promise<T> {
    const { clock, log } = this.#parts
    return await endOf(work, {
      signal,
      clock,
      onLeft: () =>
        log.error(
          { deploymentId, step },
          'a step of a deployment goes on after its signal aborted; the deployment ends without it'
        )
    })
  }

  #open(deployment: DeploymentRow, signal: AbortSignal): Rollout {
    const secrets = this.#parts.secrets.scope()
    const buildLog = openBuildLog(deployment.id, { ...this.#parts, secrets, store: this.#parts.logs })
    if (deployment.status === 'deploying') buildLog.endChannel()
    const buildSteps = new BuildSteps(deployment.id, { ...this.#parts, secrets })
    return { deployment, buildLog, buildSteps, secrets, signal, releases: [], undos: [] }
  }

  /** The log is written before its secrets may be shown again. */
  async #close({ buildLog, buildSteps, secrets, releases }: Rollout): Promise<void> {
    await Promise.all([buildLog.close(), buildSteps.flush()])
    secrets.release()
    for (const release of releases) release()
  }

  /** A switch that has begun is finished: it cannot be cancelled half-way. */
  #signalAt(name: RolloutStepName, rollout: Rollout, jobSignal: AbortSignal): AbortSignal {
    return uncancellable.includes(name) ? jobSignal : rollout.signal
  }

  async #enter(rollout: Rollout, name: RolloutStepName, jobSignal: AbortSignal): Promise<void> {
    const signal = this.#signalAt(name, rollout, jobSignal)
    if (signal === rollout.signal) signal.throwIfAborted()
    // Before the switch a cancel still comes in time.
    await this.#pass(`before ${name}`, rollout, name === 'switch' ? rollout.signal : signal)
  }

  async #note(rollout: Rollout, name: RolloutStepName, jobSignal: AbortSignal): Promise<void> {
    const { store, clock } = this.#parts
    const signal = this.#signalAt(name, rollout, jobSignal)
    if (
      !(await retryDuringOutage(async () => await store.enterStep(rollout.deployment.id, name, clock.now()), {
        clock,
        signal
      }))
    )
      throw new Cancelled()
  }

  async #pass(
    boundary: RolloutBoundary,
    rollout: Rollout & Partial<Pick<Created, 'containerId'>>,
    signal: AbortSignal
  ): Promise<void> {
    const { deployment, containerId } = rollout
    const progress = {
      deploymentId: deployment.id,
      applicationId: deployment.application_id,
      projectId: deployment.project_id,
      containerId
    }
    for (const { value, plugin } of this.#parts.hooks.entries()) {
      await askContribution(() => value.at(boundary, progress), {
        ms: hookLimitMs,
        signal,
        what: `the rollout hook of the plugin "${plugin}" ${boundary}`
      })
    }
  }

  #reason(error: unknown, signal: AbortSignal, { cancel, late, job }: Ends): DeployFailure {
    if (cancel.aborted) return new Cancelled()
    if (signal.reason === late) return late
    if (job.aborted) return new DeployFailure('the platform was stopped during the deploy', 'deploy again')
    if (!isExpected(error)) this.#parts.log.error({ err: error }, 'a deployment failed by an internal error')
    return failureOf(error)
  }

  /** Undoes the steps: the old container serves, the new one is removed, the deployment is failed. */
  async #rollBack(
    rollout: Rollout,
    reached: RolloutStepName | undefined,
    failure: DeployFailure,
    signal: AbortSignal
  ): Promise<void> {
    const { records, jobs, log, clock } = this.#parts
    const { deployment, buildLog, buildSteps, secrets } = rollout
    // What an application has said is quoted, and PostgreSQL cannot hold NUL.
    const clean = (text: string): string => secrets.clean(text).replaceAll('\0', '\u{fffd}')
    let isUndone = true
    for (const undo of rollout.undos.toReversed()) {
      try {
        await undo.run(signal)
      } catch (error) {
        isUndone = false
        log.error(
          { err: error, deploymentId: deployment.id, step: undo.step },
          'a step of a failed deployment could not be undone; it is tried again soon, and whenever the engine is back'
        )
      }
    }
    note(buildLog, failure)
    await Promise.all([buildLog.flush(), buildSteps.flush()])
    buildLog.endChannel()
    await this.#markApplication(rollout, failure)
    const failedProof: DeploymentChanges =
      reached === 'prove-healthy' && !(failure instanceof Cancelled)
        ? {
            health_status: 'failing',
            health_message: clean(failure.reason).slice(0, maxMessage),
            health_checked_at: clock.now()
          }
        : {}
    const reason = {
      message: clean(failure.message).slice(0, maxMessage),
      remedy: failure.remedy === null ? null : clean(failure.remedy),
      evidence: failure.evidence === null ? null : clean(failure.evidence).slice(-maxMessage)
    }
    await retryDuringOutage(async () => await records.fail(deployment.id, reason, failedProof), {
      clock,
      signal
    })
    // Its image, if there is one, is not needed any more.
    if (isUndone) await enqueueCleanup(this.#parts, deployment.application_id)
    else await enqueueReconcile(jobs, deployment.application_id)
  }

  /** A failed deploy leaves the status alone, unless nothing was serving anyway. */
  async #markApplication({ deployment }: Rollout, failure: DeployFailure): Promise<void> {
    const { registry, log } = this.#parts
    if (deployment.kind === 'build' || failure instanceof Cancelled) return
    try {
      const status = (await registry.deployable(deployment.application_id))?.status
      if (status === undefined || status === 'running' || status === 'unhealthy') return
      await registry.setStatus(deployment.application_id, 'error')
    } catch (error) {
      log.error(
        { err: error, deploymentId: deployment.id },
        'the status of the application could not be written'
      )
    }
  }

  /**
   * An earlier process died. When the record says that the switch had begun, the new container was
   * proven healthy: the switch is finished. Otherwise its container goes and the deployment has failed;
   * a build is not repeated unasked.
   */
  async #resume(deployment: DeploymentRow, signal: AbortSignal): Promise<void> {
    const { registry, runtime } = this.#parts
    const { id, application_id: applicationId, step, container_port: port, started_at: loadedAt } = deployment
    const application = await registry.deployable(applicationId)
    const hasSwitched = uncancellable.some(name => name === step)
    const mine = (await runtime.list({ deploymentId: id }))[0]
    if (
      application !== undefined &&
      hasSwitched &&
      mine?.status === 'running' &&
      port !== null &&
      loadedAt !== null
    ) {
      const proven = { application, containerId: mine.id, port, loadedAt }
      return await this.#rollOut(
        deployment,
        signal,
        async (rollout, boundaries) => await this.#steps.resume.run({ ...rollout, ...proven }, boundaries)
      )
    }
    const rollout = this.#open(deployment, signal)
    rollout.undos.push({ step: 'create', run: async () => await removeContainers(id, runtime) })
    if (application !== undefined && hasSwitched) {
      const { slug } = application
      const containerId = mine?.id
      rollout.undos.push({
        step: 'switch',
        run: async stopping =>
          await switchTrafficBack(
            {
              applicationId,
              slug,
              deploymentId: id,
              containerId,
              routers: this.#parts.traffic.routers()
            },
            this.#parts,
            stopping
          )
      })
    }
    const why =
      deployment.cancel_requested_at === null
        ? new DeployFailure(
            `the platform stopped while this deployment was at the step ${step ?? 'load'}`,
            'deploy again'
          )
        : new Cancelled()
    await this.#rollBack(rollout, undefined, why, signal)
    await this.#close(rollout)
  }
}

function note(buildLog: BuildLog, failure: DeployFailure): void {
  for (const line of failure.evidence?.split('\n').slice(-50) ?? [])
    buildLog.line({ level: 'info', stream: 'stdout', msg: line })
  buildLog.line({
    level: 'error',
    msg: failure instanceof Cancelled ? 'The deployment was cancelled.' : failure.message
  })
}
