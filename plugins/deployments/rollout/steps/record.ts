import { retryDuringOutage } from '../database-outage.js'
import type { Loaded, Rollout, RolloutTools } from '../rollout.js'
import type { RolloutStep } from '../step-sequence.js'

export type Recordable = Rollout & Pick<Loaded, 'loadedAt'>

/** Makes the deployment a success. */
export function record({
  store,
  records,
  registry,
  db,
  clock
}: Pick<RolloutTools, 'store' | 'records' | 'registry' | 'db' | 'clock'>): RolloutStep<Recordable, object> {
  return {
    name: 'record',
    async run({ deployment, buildLog, signal, loadedAt: startedAt }) {
      const { id, application_id: applicationId, kind } = deployment
      buildLog.line({
        level: 'info',
        msg: kind === 'build' ? 'The image is built.' : 'The new version serves.'
      })
      await buildLog.flush()
      const finishedAt = clock.now()
      let isRepeated = false
      // The new version serves already: an outage of the database does not take that back.
      await retryDuringOutage(
        async () => {
          // The answer to the commit may be all that was lost.
          if (isRepeated && (await store.row(id))?.status === 'success') return
          isRepeated = true
          await db.transaction(async tx => {
            await records.succeed(id, { finished_at: finishedAt, step: null }, tx)
            if (kind === 'build') return
            await registry.recordDeployed(
              applicationId,
              { deploymentId: id, startedAt, finishedAt, rebuilt: kind === 'deploy' || kind === 'rebuild' },
              tx
            )
          })
        },
        { clock, signal }
      )
      return {}
    }
  }
}
