import { described, named, nullable, object, oneOf, type Static, Type, timestamp, uuid } from 'busbar/sdk'
import { localProvider } from '../destinations/providers.js'
import type { BackupOfSource, BackupRow } from './backup-store.js'

const proof = named(
  'BackupProof',
  object({
    status: described(
      oneOf(['unproven', 'running', 'proven', 'failed']),
      '`unproven`: nobody has restored it yet. `proven`: it was restored into a throwaway copy, which answered. `failed`: that did not work.'
    ),
    checked_at: described(nullable(timestamp()), 'When that was tried last; null where it never was.'),
    duration_ms: described(nullable(Type.Integer()), 'How long it took, in milliseconds.'),
    rows: described(nullable(Type.Integer()), 'How many rows, keys or files the copy had.'),
    detail: described(nullable(Type.String()), 'What else the copy said.'),
    error: described(nullable(Type.String()), 'Why it did not work; null otherwise.')
  }),
  { description: 'Whether a backup is known to be worth something.' }
)

const common = {
  id: described(uuid(), 'What the backup is called in paths.'),
  status: described(oneOf(['running', 'succeeded', 'failed']), 'How it is.'),
  started_at: described(timestamp(), 'When it was asked for.'),
  finished_at: described(nullable(timestamp()), 'When it ended; null while it runs.'),
  size_bytes: described(Type.Integer(), 'How long the file is; 0 while there is none.'),
  has_remote: described(
    Type.Boolean(),
    "Whether it is kept elsewhere: in a bucket of a destination, or in the platform's. Otherwise it is on this machine, as what is kept at a `local` destination is."
  ),
  error: described(Type.String(), 'Why it failed; empty otherwise.'),
  log: described(Type.String(), 'What it did, one JSON object a line: `time` and `message`.'),
  encrypted: described(
    Type.Boolean(),
    'Whether the file is encrypted: to a key of the installation, and to the recovery key where there is one.'
  ),
  sha256: described(nullable(Type.String()), 'Of the file, in hexadecimal digits; null while there is none.'),
  format: described(
    nullable(Type.String()),
    'How the dump is written, once it was decrypted and decompressed.'
  ),
  version: described(Type.String(), 'The version of the engine that it was made of.'),
  proof: described(proof, 'Whether it was restored as a proof.')
}

const remote = {
  config_id: described(
    nullable(uuid()),
    'The schedule that has made it; null where it was made by hand, or the schedule was deleted.'
  ),
  remote_key: described(
    Type.String(),
    'The key of the file where it is kept elsewhere (`has_remote`); empty otherwise.'
  ),
  target_database: described(
    Type.String(),
    'Which databases are in it, with commas between; empty: all of them.'
  )
}

export const databaseBackup = named('DatabaseBackup', object({ ...common, ...remote }), {
  description: 'A backup of a database, or the attempt to make one.'
})

export const volumeBackup = named(
  'VolumeBackup',
  object({
    ...common,
    config_id: described(
      Type.String(),
      'The schedule that has made it; empty where the schedule was deleted.'
    )
  }),
  { description: 'A backup of a volume, or the attempt to make one.' }
)

export const projectBackup = named(
  'ProjectBackup',
  object({
    ...common,
    ...remote,
    kind: described(oneOf(['database', 'volume']), 'What it is a backup of.'),
    resource_id: described(uuid(), 'The database or the volume.'),
    resource_name: described(Type.String(), 'What that is called.'),
    app_name: described(nullable(Type.String()), 'The application of a volume; null otherwise.')
  }),
  { description: 'A backup, with what it is one of.' }
)

export const orphanedBackup = named(
  'OrphanedBackup',
  object({
    ...common,
    ...remote,
    tombstone_id: described(uuid(), 'What is left of the database: backups of the same one have the same.'),
    database_name: described(Type.String(), 'What the database was called.'),
    database_slug: described(Type.String(), 'Its host name.'),
    database_type: described(Type.String(), 'Its engine.'),
    database_deleted_at: described(timestamp(), 'When it was deleted.')
  }),
  { description: 'A backup of a database that was deleted.' }
)

export const orphanedVolumeBackup = named(
  'OrphanedVolumeBackup',
  object({
    ...common,
    ...remote,
    tombstone_id: described(uuid(), 'What is left of the volume: backups of the same one have the same.'),
    application_id: described(uuid(), 'The application that had the volume.'),
    app_name: described(Type.String(), 'What that is called.'),
    volume_name: described(
      Type.String(),
      'What the volume was called: the next one of that name in the application has its backups.'
    ),
    mount_path: described(Type.String(), 'Where containers of the application had it.'),
    volume_deleted_at: described(timestamp(), 'When it was deleted.')
  }),
  { description: 'A backup of a volume that was deleted.' }
)

export const backupParams = { backupId: described(uuid(), 'The `id` of the backup.') }

const isRemote = (row: BackupRow): boolean => {
  const isElsewhere = row.destination_id === null ? row.in_platform_store : row.provider !== localProvider
  return isElsewhere && row.status === 'succeeded'
}

const commonOf = (row: BackupRow) => ({
  id: row.id,
  status: row.status,
  started_at: row.started_at,
  finished_at: row.finished_at,
  size_bytes: row.size_bytes,
  has_remote: isRemote(row),
  error: row.error ?? '',
  log: row.log,
  encrypted: row.key_id !== null,
  sha256: row.sha256,
  format: row.format,
  version: row.version,
  proof: {
    status: row.proof,
    checked_at: row.proof_at,
    duration_ms: row.proof_ms,
    rows: row.proof_rows,
    detail: row.proof_detail,
    error: row.proof_error
  }
})

const remoteOf = (row: BackupRow) => ({
  config_id: row.config_id,
  remote_key: isRemote(row) ? (row.key ?? '') : '',
  target_database: row.databases.join(',')
})

export const databaseBackupOf = (row: BackupRow): Static<typeof databaseBackup> => ({
  ...commonOf(row),
  ...remoteOf(row)
})

export const volumeBackupOf = (row: BackupRow): Static<typeof volumeBackup> => ({
  ...commonOf(row),
  config_id: row.config_id ?? ''
})

export const projectBackupOf = (row: BackupOfSource): Static<typeof projectBackup> => ({
  ...databaseBackupOf(row),
  kind: row.kind,
  resource_id: row.resource_id,
  resource_name: row.resource_name,
  app_name: row.application_name
})

export const orphanedVolumeBackupOf = (row: BackupOfSource): Static<typeof orphanedVolumeBackup> => ({
  ...databaseBackupOf(row),
  tombstone_id: row.source_id,
  application_id: row.application_id ?? row.resource_id,
  app_name: row.application_name ?? '',
  volume_name: row.resource_name,
  mount_path: row.mount_path ?? '',
  volume_deleted_at: row.deleted_at ?? row.started_at
})

export const orphanedBackupOf = (row: BackupOfSource): Static<typeof orphanedBackup> => ({
  ...databaseBackupOf(row),
  tombstone_id: row.source_id,
  database_name: row.resource_name,
  database_slug: row.slug,
  database_type: row.engine,
  database_deleted_at: row.deleted_at ?? row.started_at
})
