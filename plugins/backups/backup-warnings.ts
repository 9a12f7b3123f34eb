import type { ConfigWarning } from 'busbar/sdk'

interface Facts {
  readonly hasBackups: boolean
  readonly hasRecoveryKey: boolean
}

/** What an admin should know of backups of databases and volumes. */
export function backupWarnings({ hasBackups, hasRecoveryKey }: Facts): ConfigWarning[] {
  if (!hasBackups || hasRecoveryKey) return []
  return [
    {
      code: 'backups_without_recovery_key',
      message:
        'Backups of databases and volumes are encrypted to a key that only this installation has, and are worth nothing when it is lost',
      remedy: 'make a recovery key with POST /api/backups/recovery-key, and keep it elsewhere'
    }
  ]
}
