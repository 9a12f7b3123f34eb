import { applicationTable } from 'busbar/api/applications'
import type { BulkConnection } from 'busbar/sdk'

/**
 * For who restores the platform. A deploy that waited when the archive was made would bring what was asked for then. One that had begun is
 * ended, or goes on where it serves, as after a crash.
 */
export const interruptedDeploys = {
  schema: 'deployments',
  needed: {
    deployment: ['application_id', 'status', 'error_message', 'remedy', 'waiting_for', 'finished_at'],
    follow_up: ['application_id']
  },
  end: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    await connection.query('delete from deployments.follow_up')
    const failed = await connection.query<{ name: string }>(
      `with failed as (
        update deployments.deployment set status = 'failed', finished_at = now(), waiting_for = null,
          error_message = 'the platform was restored from an archive that was made while this deployment waited',
          remedy = 'deploy again where it is still wanted'
        where status = 'pending' returning application_id)
      select a.name from failed f join ${applicationTable.name} a on a.id = f.application_id order by 1`
    )
    return failed.map(
      ({ name }) =>
        `a deploy of the application ${name} waited, and was not over when the archive was made: it does not go on; deploy again where it is still wanted`
    )
  }
}
