import { enqueueCleanup } from '../../cleanup.js'
import type { RolloutTools, Switched } from '../rollout.js'
import { enqueueReconcile } from '../serving-reconciler.js'
import type { RolloutStep } from '../step-sequence.js'

/** By a job of its own: an old version may take all of its grace period to stop, and no other deploy waits for that. */
export function cleanUp(
  tools: Pick<RolloutTools, 'jobs' | 'store' | 'traffic'>
): RolloutStep<Switched, object> {
  const { jobs, traffic } = tools
  return {
    name: 'clean-up',
    async run({ deployment, routers }) {
      // A router that was off during the switch still routes to the old version: it is switched before that is removed.
      if (traffic.hasChanged(routers)) await enqueueReconcile(jobs, deployment.application_id)
      else await enqueueCleanup(tools, deployment.application_id)
      return {}
    }
  }
}
