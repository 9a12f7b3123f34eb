import {
  described,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

export const run = named(
  'PlatformBackupRun',
  object({
    id: described(uuid(), 'What the run is called.'),
    started_at: described(timestamp(), 'When it was asked for.'),
    finished_at: described(nullable(timestamp()), 'When it ended; null while it runs.'),
    status: described(oneOf(['running', 'succeeded', 'failed']), 'How it is.'),
    remote_key: described(
      nullable(Type.String()),
      'The key of the archive in the bucket of the remote; null where it was not uploaded.'
    ),
    size_bytes: described(Type.Integer(), 'How long the archive is; 0 while there is none.'),
    error: described(nullable(Type.String()), 'Why it failed; null otherwise.'),
    log: described(
      Type.String(),
      'What it did, one JSON object a line: `time` and `message`. What an archive does not hold is named there.'
    ),
    encrypted: described(Type.Boolean(), 'Whether the archive is encrypted.')
  }),
  { description: 'A backup of the platform, or the attempt to make one.' }
)
export type RunAnswer = Static<typeof run>

const remoteView = named(
  'PlatformBackupRemote',
  object({
    endpoint: described(Type.String(), 'The host of the store, with its port; empty: Amazon S3.'),
    region: described(Type.String(), 'The region of the bucket.'),
    bucket: described(Type.String(), 'The bucket.'),
    prefix: described(Type.String(), 'What the keys of archives begin with.'),
    use_ssl: described(Type.Boolean(), 'Whether it is reached over TLS.')
  }),
  { description: 'Where archives are uploaded to. The keys are in no answer.' }
)
export type RemoteView = Static<typeof remoteView>

export const status = named(
  'PlatformBackupStatus',
  object({
    last_succeeded_at: described(nullable(timestamp()), 'When the last backup ended that succeeded.'),
    last_attempted_at: described(nullable(timestamp()), 'When the last one was asked for.'),
    last_error: described(
      nullable(Type.String()),
      'Why the last one failed; null where it succeeded, or none has ended.'
    ),
    remote_enabled: described(Type.Boolean(), 'Whether archives are uploaded.'),
    remote: described(nullable(remoteView), 'Where to; null while no bucket is set.'),
    retention: described(
      object({
        days: described(Type.Integer(), 'Older archives are removed, here and at the remote.'),
        count: described(Type.Integer(), 'So many of the newest are kept, however old they are.')
      }),
      'What becomes of old archives.'
    ),
    encryption_enabled: described(Type.Boolean(), 'Whether archives are encrypted.'),
    encryption_recipient: described(
      nullable(Type.String()),
      'What they are encrypted to, an age recipient: that of the recovery key, or else of `BACKUP_ENCRYPTION_KEY`.'
    )
  }),
  { description: 'How backups of the platform are.' }
)
export type StatusAnswer = Static<typeof status>

const setting = (words: string, max: number) =>
  described(maybe(text({ max })), `${words} Left out: it stays.`)

export const remoteBody = named(
  'UpdatePlatformBackupRemote',
  object({
    enabled: described(maybe(nullable(Type.Boolean())), 'Whether archives are uploaded. Left out: it stays.'),
    endpoint: setting('The host of the store, with its port where it has one; empty: Amazon S3.', 300),
    region: setting('The region of the bucket.', 100),
    bucket: setting('The bucket, which must be there.', 255),
    prefix: setting('What the keys of archives begin with.', 500),
    use_ssl: described(
      maybe(nullable(Type.Boolean())),
      'Whether it is reached over TLS. Left out: it stays.'
    ),
    access_key: setting('The id of the access key. It is kept encrypted and is in no answer.', 500),
    secret_key: setting('The secret of the access key. It is kept encrypted and is in no answer.', 2000)
  }),
  {
    description: 'Where archives are uploaded to. What is left out stays as it is.',
    examples: [
      {
        enabled: true,
        endpoint: 's3.example.com',
        region: 'eu-central-1',
        bucket: 'backups',
        prefix: 'busbar/',
        use_ssl: true,
        access_key: 'AKIDEXAMPLE',
        secret_key: 'wJalrXUtnFEMIK7MDENG'
      }
    ]
  }
)
export type RemoteBody = Static<typeof remoteBody>

export const remoteAnswer = named(
  'UpdatedPlatformBackupRemote',
  object({
    remote: described(remoteView, 'As it is now; without a bucket where none is set.'),
    status: described(Type.String(), 'Always `updated`.')
  }),
  { description: 'What the remote has become.' }
)

export const remoteTrial = named(
  'PlatformBackupRemoteTrial',
  object({
    ok: described(Type.Boolean(), 'Whether the bucket is there and lets these keys in.'),
    error: described(maybe(Type.String()), 'Why not; left out where it works.')
  }),
  { description: 'What the store says of these settings now.' }
)

export const recoveryKeyBody = named(
  'CreateRecoveryKey',
  object({
    replace: described(
      maybe(Type.Boolean()),
      'Makes another key where there is one already. Archives of before are opened by the key of before alone.'
    )
  }),
  { description: 'How a recovery key is made.', examples: [{ replace: false }] }
)

export const newRecoveryKey = named(
  'NewRecoveryKey',
  object({
    recovery_key: described(
      Type.String(),
      'The key, an age identity. It is shown this once and is kept nowhere: without it nobody can open the archives that are encrypted to it.'
    ),
    recipient: described(Type.String(), 'What archives are encrypted to from now on. It is no secret.'),
    created_at: described(timestamp(), 'When it was made.')
  }),
  { description: 'A recovery key, which is needed to restore the platform.' }
)

export const recoveryKey = named(
  'RecoveryKey',
  object({
    recipient: described(
      nullable(Type.String()),
      'What archives are encrypted to; null while no key was made.'
    ),
    created_at: described(nullable(timestamp()), 'When the key was made; null while none was.')
  }),
  { description: 'What is known of the recovery key. The key itself is not.' }
)
