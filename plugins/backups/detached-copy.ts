import type { BulkConnection } from 'busbar/sdk'

const waitingError =
  'the platform was restored for a trial from an archive that was made while this backup waited: make another one'

/**
 * For who restores the platform as a copy beside the original: nothing is backed up, and nothing proven, by itself; and files that the
 * original has written are none of the copy's. They can be restored there, and stay where they are, whatever is deleted.
 */
export const detachedBackups = {
  plugin: 'backups',
  settings: {},
  schema: 'backups',
  needed: {
    config: ['id', 'enabled', 'drill_schedule'],
    backup: ['status', 'finished_at', 'error', 'has_file', 'proof']
  },
  detach: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    await connection.query(
      `update backups.backup set status = 'failed', finished_at = now(), error = $1 where status = 'running'`,
      [waitingError]
    )
    await connection.query(
      `update backups.backup set has_file = false, proof = case proof when 'running' then 'unproven' else proof end
      where has_file or proof = 'running'`
    )
    const off = await connection.query(
      `update backups.config set enabled = false, drill_schedule = ''
      where enabled or drill_schedule <> '' returning id`
    )
    return [
      `schedules of backups and drills are off (${off.length} were on)`,
      'backups that the original has made can be restored, and their files are never removed from here'
    ]
  }
}
