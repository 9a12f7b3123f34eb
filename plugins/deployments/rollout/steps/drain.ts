import { drainMs, orStopped } from '../drain-limit.js'
import type { RolloutTools, Switched } from '../rollout.js'
import type { RolloutStep } from '../step-sequence.js'

/** A proxy that follows the container's name needs this long to notice that it has moved. */
const overlapMs = 2000

/** Waits for what is under way on the old version. */
export function drain({
  store,
  clock
}: Pick<RolloutTools, 'store' | 'clock'>): RolloutStep<Switched, object> {
  return {
    name: 'drain',
    async run({ deployment, signal, old, drain: drained }) {
      // The switch is watched for as long as the two are there together.
      if (old?.status === 'running') await clock.sleep(overlapMs, signal)
      const proof = await orStopped(drained(drainMs), signal)
      if (proof !== undefined)
        await store.change(deployment.id, {
          switch_served: proof.served,
          switch_failed: proof.failed,
          switch_longest_gap_ms: proof.longestGapMs,
          switch_cut: proof.cut,
          drain_ms: proof.drainMs
        })
      return {}
    }
  }
}
