import { type HealthProof, proveHealthy } from '../../health/health-proof.js'
import type { HttpCheck } from '../../health/http-check.js'
import { DeployFailure } from '../deploy-failure.js'
import { explainExit } from '../exit-diagnosis.js'
import type { RolloutTools, Started } from '../rollout.js'
import type { RolloutStep } from '../step-sequence.js'

const evidenceLines = 40

/** Waits until the new container may get traffic, or says why it may not. */
export function proveHealth({
  runtime,
  store,
  clock
}: Pick<RolloutTools, 'runtime' | 'store' | 'clock'>): RolloutStep<Started, object> {
  const lastLines = async (containerId: string): Promise<readonly string[]> =>
    await runtime.tail(containerId, evidenceLines).catch(() => [])

  /** Whatever comes first: the proof, its failure, or the end of the process. */
  async function provenOrEnded(rollout: Started): Promise<HealthProof> {
    const { application, image, containerId, port, isPortKnown, exitWatch } = rollout
    const proving = new AbortController()
    const signal = AbortSignal.any([rollout.signal, proving.signal])
    const proof = proveHealthy(
      { check: application.healthCheck, containerId, port, isPortKnown },
      { runtime, clock, signal }
    )
    const ended = exitWatch.exited.then(async exit => {
      if (exit.isEngineLost)
        throw new DeployFailure(
          'the Docker Engine ended while the new version was being proven, and took it down',
          'see the log of dockerd, and deploy again'
        )
      throw explainExit(
        { ...exit, lines: await lastLines(containerId) },
        { ...application, foreignPlatform: image.image.foreignPlatform }
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

  return {
    name: 'prove-healthy',
    isEarly: true,
    async run(rollout) {
      const proof = await provenOrEnded(rollout)
      await store.change(rollout.deployment.id, {
        health_status: proof.status,
        health_message: proof.message,
        health_checked_at: clock.now(),
        http_check: httpCheckOf(rollout)
      })
      rollout.buildLog.line({ level: 'info', msg: `Healthy: ${proof.message}.` })
      return {}
    }
  }
}

const httpCheckOf = ({ application: { healthCheck: check }, port }: Started): HttpCheck | null =>
  check.type === 'http' ? { path: check.path, expectStatus: check.expectStatus, port } : null
