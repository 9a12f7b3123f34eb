import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  busy: [409, 'E_PLATFORM_BACKUP_BUSY', 'a backup is already in progress'],
  remoteOff: [
    400,
    'E_PLATFORM_BACKUP_REMOTE_OFF',
    'no remote is enabled',
    'set one with PUT /api/backups/remote'
  ],
  remoteFailed: [502, 'E_PLATFORM_BACKUP_REMOTE', 'the remote does not work: {reason}'],
  bucketMissing: [
    400,
    'E_PLATFORM_BACKUP_BUCKET',
    'bucket must not be empty while the remote is enabled',
    { field: 'bucket' }
  ],
  endpointInvalid: [
    400,
    'E_PLATFORM_BACKUP_ENDPOINT',
    'endpoint: {endpoint} is no host',
    {
      field: 'endpoint',
      remedy: 'write a host, with its port where there is one, such as s3.example.com:9000'
    }
  ],
  keysMissing: [
    400,
    'E_PLATFORM_BACKUP_KEYS',
    'access_key and secret_key must be given while the remote is enabled',
    { field: 'access_key' }
  ],
  keysAgain: [
    400,
    'E_PLATFORM_BACKUP_KEYS_AGAIN',
    'access_key and secret_key must be sent again: the remote moves to {host}, and keys that are stored, or come from the environment, are never sent to another host',
    { field: 'secret_key' }
  ],
  secretUnreadable: [
    500,
    'E_PLATFORM_BACKUP_SECRET',
    'the stored keys of the remote cannot be decrypted',
    'enter them again with PUT /api/backups/remote'
  ],
  recoveryKeyExists: [
    409,
    'E_RECOVERY_KEY_EXISTS',
    'a recovery key was made at {createdAt}, and is shown once only',
    'with "replace": true another one is made; archives that there are can be opened by the old one alone'
  ]
})
