import type { JobDeclarer, SingletonDeclarer } from 'busbar/sdk'
import { type CleanupPayload, cleanupJob } from './cleanup.js'
import type { Deployments } from './deployments.js'
import { type DeployPayload, deployJob } from './records/deployment-records.js'
import { type ReconcilePayload, reconcileJob } from './rollout/serving-reconciler.js'

/** Longer than any TASK_TIMEOUT_MINUTES: the engine ends a deployment in time and says so in its record. */
const outerLimitMs = 24 * 60 * 60_000

export function jobs(job: JobDeclarer<Deployments>) {
  job<DeployPayload>({
    name: deployJob,
    lane: 'long',
    attempts: 2,
    timeoutMs: outerLimitMs,
    run: async ({ deploymentId }, context, { engine }) => {
      await engine.run(deploymentId, context)
    }
  })
  job<ReconcilePayload>({
    name: reconcileJob,
    run: async ({ applicationId }, _, { servingReconciler }) => {
      await servingReconciler.application(applicationId)
    }
  })
  job<CleanupPayload>({
    name: cleanupJob,
    run: async ({ applicationId }, _, { cleanup }) => {
      await cleanup.application(applicationId)
    }
  })
}

export function singletons(singleton: SingletonDeclarer<Deployments>) {
  singleton({
    name: 'recovery',
    run: async ({ signal }, { recovery }) => {
      await recovery.run(signal)
    }
  })
  singleton({
    name: 'health-watch',
    run: async ({ signal }, { healthWatch }) => {
      await healthWatch.run(signal)
    }
  })
  singleton({
    name: 'disk-guard',
    run: async ({ signal }, { diskGuard }) => {
      await diskGuard.run(signal)
    }
  })
  singleton({
    name: 'turns',
    run: async ({ signal }, { turns }) => {
      await turns.run(signal)
    }
  })
  singleton({
    name: 'build-queue',
    run: async ({ signal }, { buildQueue }) => {
      await buildQueue.run(signal)
    }
  })
}
