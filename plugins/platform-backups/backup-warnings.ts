import type { ConfigWarning } from 'busbar/sdk'

interface BackupState {
  readonly isScheduled: boolean
  readonly hasSucceeded: boolean
  readonly hasRecoveryKey: boolean
  readonly isEncrypted: boolean
  readonly isUploaded: boolean
}

/** What is wrong with how the platform is backed up. */
export function backupWarnings({
  isScheduled,
  hasSucceeded,
  hasRecoveryKey,
  isEncrypted,
  isUploaded
}: BackupState): ConfigWarning[] {
  const warnings: ConfigWarning[] = []
  if (!hasRecoveryKey && !isEncrypted)
    warnings.push({
      code: 'no_recovery_key',
      message:
        'no recovery key was made, so backups of the platform are not encrypted and lack its keys: who restores one cannot open the secrets in it',
      remedy: 'make a recovery key with POST /api/backups/recovery-key, and keep it apart from this machine'
    })
  if (!hasSucceeded)
    warnings.push({
      code: 'no_platform_backup',
      message: isScheduled
        ? 'no backup of the platform has succeeded yet, so everything is lost with this machine'
        : 'no backup of the platform has succeeded yet, and none is made by itself, so everything is lost with this machine',
      remedy: 'make one with POST /api/backups/run'
    })
  else if (!isUploaded)
    warnings.push({
      code: 'no_remote_backup',
      message: 'backups of the platform are kept on its own machine only, and are lost with it',
      remedy: 'set a remote with PUT /api/backups/remote'
    })
  return warnings
}
