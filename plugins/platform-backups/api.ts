import { event } from 'busbar/sdk'

/** A backup of the platform has failed, or was cut off. */
export const platformBackupFailed = event<{
  /** A UUID; see `GET /api/backups`. */
  readonly runId: string
  /** A sentence, without secrets. */
  readonly reason: string
}>('platform-backups.failed')
