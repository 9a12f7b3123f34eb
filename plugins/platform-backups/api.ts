import { event, service } from 'busbar/sdk'
import type { S3Settings } from 'busbar/sdk/s3'

/** A backup of the platform has failed, or was cut off. */
export const platformBackupFailed = event<{
  /** A UUID; see `GET /api/backups`. */
  readonly runId: string
  /** A sentence, without secrets. */
  readonly reason: string
}>('platform-backups.failed')

/** What is to be readable when the installation is lost is encrypted to these; for built-in plugins. */
export interface RecoveryRecipients {
  /** age recipients, any of whose keys opens it; none where no recovery key was made. Rejects where they cannot be read. */
  recipients(): Promise<readonly string[]>
}
export const recoveryRecipients = service<RecoveryRecipients>('platform-backups.recoveryRecipients', {
  builtInOnly: true
})

/** The bucket that archives of the platform are uploaded to, for what else belongs there; for built-in plugins. */
export interface PlatformStore {
  /** Undefined while no remote is enabled. With the keys in clear. `prefix` ends as it was set. */
  settings(): Promise<{ readonly bucket: S3Settings; readonly prefix: string } | undefined>
}
export const platformStore = service<PlatformStore>('platform-backups.store', { builtInOnly: true })
