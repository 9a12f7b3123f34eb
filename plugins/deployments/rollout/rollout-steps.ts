import type { ApplicationSource } from 'busbar/api/applications'
import { bounded } from 'busbar/sdk'
import { hookLimitMs } from '../api.js'
import { type HealthProof, proveHealthy } from '../health/health-proof.js'
import type { HttpCheck } from '../health/http-check.js'
import { enqueueTidy } from '../tidying.js'
import { candidateName } from './container-name.js'
import { outlast } from './database-outage.js'
import { DeployFailure } from './deploy-failure.js'
import { explainExit } from './exit-diagnosis.js'
import { watchExit } from './exit-watch.js'
import { prepareImage } from './image-step.js'
import { from, type Rollout, type RolloutStep, type RolloutTools } from './rollout.js'
import { startWith } from './start-words.js'
import { switchTraffic, switchTrafficBack } from './switch-step.js'

/** How long requests under way on the old version may take before it is asked to stop; it then has its own grace. */
const drainMs = 10_000
/** A proxy that follows the container's name needs this long to notice that it has moved. */
const overlapMs = 2000
const defaultPort = 8080
const evidenceLines = 40

/** What a deployment does, in order. `record` makes it a success; what comes after it cleans up. */
export function rolloutSteps(tools: RolloutTools): readonly RolloutStep[] {
  const { registry, variables, runtime, gates, parts, records, store, db, clock, jobs } = tools

  const load: RolloutStep = {
    name: 'load',
    async run(rollout) {
      const { application_id: applicationId, project_id: projectId } = rollout.deployment
      rollout.loadedAt = clock.now()
      const application = await registry.deployable(applicationId)
      if (application === undefined) throw new DeployFailure('the application is being deleted')
      for (const { value, plugin } of gates.entries()) {
        const reason = await bounded(() => value.refuses({ id: applicationId, projectId }), {
          ms: hookLimitMs,
          signal: rollout.signal,
          what: `the deploy gate of the plugin "${plugin}"`
        })
        if (reason !== null) throw new DeployFailure(reason)
      }
      rollout.application = application
      rollout.variables = await variables.merged(projectId, applicationId)
      const hidden = rollout.variables.filter(({ isSecret }) => isSecret).map(({ value }) => value)
      rollout.secrets.redact([...hidden, ...secretsOf(application.source)])
    }
  }

  const network: RolloutStep = {
    name: 'network',
    async run(rollout) {
      const { projectId, projectSlug } = from(rollout, 'application')
      rollout.network = await runtime.ensureNetwork({ id: projectId, slug: projectSlug })
    }
  }

  const create: RolloutStep = {
    name: 'create',
    async run(rollout) {
      const application = from(rollout, 'application')
      const { image, reference } = from(rollout, 'image')
      const { id: deploymentId } = rollout.deployment
      const exposed = image.exposedPorts[0]
      rollout.isPortKnown = application.containerPort !== null || exposed !== undefined
      rollout.port = application.containerPort ?? exposed ?? defaultPort
      const added = await Promise.all(
        parts.entries().map(
          async ({ value, plugin }) =>
            await bounded(() => value.partsFor(application), {
              ms: hookLimitMs,
              signal: rollout.signal,
              what: `the container parts of the plugin "${plugin}"`
            })
        )
      )
      const check = application.healthCheck
      rollout.containerId = await runtime.create({
        name: candidateName(application.slug, deploymentId),
        image: reference,
        owner: { projectId: application.projectId, applicationId: application.id, deploymentId },
        network: from(rollout, 'network'),
        ...(application.startCommand !== null &&
          startWith(application.startCommand, await entrypointOf(rollout))),
        env: Object.fromEntries(from(rollout, 'variables').map(({ key, value }) => [key, value])),
        cpuLimit: application.cpuLimit,
        memoryLimit: application.memoryLimit,
        caps: application.containerCaps,
        readonlyRootfs: application.readonlyRootfs,
        healthCommand: check.type === 'command' ? check : undefined,
        volumes: added.flatMap(({ volumes }) => volumes)
      })
      await store.change(deploymentId, { container_port: rollout.port })
    },
    async undo(rollout) {
      for (const { id } of await runtime.list({ deploymentId: rollout.deployment.id }))
        await runtime.remove(id)
    }
  }

  /** Not every builder says it of the image that it has made. */
  async function entrypointOf(rollout: Rollout): Promise<readonly string[]> {
    const { image, reference } = from(rollout, 'image')
    return image.entrypoint ?? (await runtime.image(reference))?.entrypoint ?? []
  }

  const start: RolloutStep = {
    name: 'start',
    async run(rollout) {
      const containerId = from(rollout, 'containerId')
      rollout.exitWatch = await watchExit(runtime, clock, containerId)
      rollout.releases.push(rollout.exitWatch.stop)
      await runtime.start(containerId)
      rollout.buildLog.line({
        level: 'info',
        msg: 'The new container runs beside the old one; waiting until it is healthy.'
      })
    }
  }

  const prove: RolloutStep = {
    name: 'prove-healthy',
    async run(rollout) {
      const proof = await provenOrEnded(rollout)
      await store.change(rollout.deployment.id, {
        health_status: proof.status,
        health_message: proof.message,
        health_checked_at: clock.now(),
        http_check: httpCheckOf(rollout)
      })
      rollout.buildLog.line({ level: 'info', msg: `Healthy: ${proof.message}.` })
    }
  }

  function httpCheckOf(rollout: Rollout): HttpCheck | null {
    const { healthCheck: check } = from(rollout, 'application')
    return check.type === 'http'
      ? { path: check.path, expectStatus: check.expectStatus, port: from(rollout, 'port') }
      : null
  }

  /** Whatever comes first: the proof, its failure, or the end of the process. */
  async function provenOrEnded(rollout: Rollout): Promise<HealthProof> {
    const containerId = from(rollout, 'containerId')
    const proving = new AbortController()
    const signal = AbortSignal.any([rollout.signal, proving.signal])
    const proof = proveHealthy(
      {
        check: from(rollout, 'application').healthCheck,
        containerId,
        port: from(rollout, 'port'),
        isPortKnown: from(rollout, 'isPortKnown')
      },
      { runtime, clock, signal }
    )
    const ended = from(rollout, 'exitWatch').exited.then(async exit => {
      if (exit.isEngineLost)
        throw new DeployFailure(
          'the Docker Engine ended while the new version was being proven, and took it down',
          'see the log of dockerd, and deploy again'
        )
      throw explainExit(
        { ...exit, lines: await lastLines(containerId) },
        { ...from(rollout, 'application'), foreignPlatform: rollout.image?.image.foreignPlatform }
      )
    })
    try {
      return await Promise.race([proof, ended])
    } catch (error) {
      if (!(error instanceof DeployFailure) || error.evidence !== null) throw error
      const lines = await lastLines(containerId)
      throw new DeployFailure(error.reason, error.remedy, lines.length === 0 ? null : lines.join('\n'))
    } finally {
      proving.abort()
      proof.catch(() => {})
      ended.catch(() => {})
    }
  }

  const lastLines = async (containerId: string): Promise<readonly string[]> =>
    await runtime.tail(containerId, evidenceLines).catch(() => [])

  const record: RolloutStep = {
    name: 'record',
    async run(rollout) {
      const { id, application_id: applicationId, kind } = rollout.deployment
      rollout.buildLog.line({
        level: 'info',
        msg: kind === 'build' ? 'The image is built.' : 'The new version serves.'
      })
      await rollout.buildLog.flush()
      const finishedAt = clock.now()
      let isRepeated = false
      // The new version serves already: an outage of the database does not take that back.
      await outlast(
        async () => {
          // The answer to the commit may be all that was lost.
          if (isRepeated && (await store.row(id))?.status === 'success') return
          isRepeated = true
          await db.transaction(async tx => {
            await records.succeed(id, { finished_at: finishedAt, step: null }, tx)
            if (kind === 'build') return
            const startedAt = from(rollout, 'loadedAt')
            await registry.recordDeployed(
              applicationId,
              { deploymentId: id, startedAt, finishedAt, rebuilt: kind === 'deploy' || kind === 'rebuild' },
              tx
            )
          })
        },
        { clock, signal: rollout.signal }
      )
    }
  }

  const drain: RolloutStep = {
    name: 'drain',
    async run(rollout) {
      // The switch is watched for as long as the two are there together.
      if (rollout.old?.status === 'running') await clock.sleep(overlapMs, rollout.signal)
      const proof = await orStopped(rollout.drain?.(drainMs), rollout.signal)
      if (proof === undefined) return
      await store.change(rollout.deployment.id, {
        switch_served: proof.served,
        switch_failed: proof.failed,
        switch_longest_gap_ms: proof.longestGapMs,
        switch_cut: proof.cut,
        drain_ms: proof.drainMs
      })
    }
  }

  const cleanUp: RolloutStep = {
    name: 'clean-up',
    // A job of its own: an old version may take its whole grace to stop, and no other deploy waits for that.
    async run(rollout) {
      await enqueueTidy({ jobs, store }, rollout.deployment.application_id)
    }
  }

  return [
    load,
    { name: 'prepare-image', run: async rollout => await prepareImage(rollout, tools) },
    network,
    create,
    start,
    prove,
    {
      name: 'switch',
      run: async rollout => await switchTraffic(rollout, tools),
      undo: async rollout => await switchTrafficBack(rollout, tools)
    },
    record,
    drain,
    cleanUp
  ]
}

/** What an application's source is fetched with. */
function secretsOf(source: ApplicationSource): string[] {
  const secret = source.type === 'git' ? source.token : source.registry?.password
  return secret === undefined || secret === null ? [] : [secret]
}

/** Nobody waits for other people's requests when the platform stops. */
async function orStopped<T>(work: Promise<T> | undefined, signal: AbortSignal): Promise<T | undefined> {
  signal.throwIfAborted()
  const done = new AbortController()
  const stopped = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: done.signal })
  )
  try {
    return await Promise.race([work, stopped])
  } finally {
    done.abort()
  }
}

/** A build leaves containers alone. */
export const stepsOfBuild: ReadonlySet<string> = new Set(['load', 'prepare-image', 'record'])
