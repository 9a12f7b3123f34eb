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
import type { RestoreRow } from './restore-store.js'

const fields = {
  id: described(uuid(), 'What the restore is called.'),
  backup_id: described(uuid(), 'The backup that is restored; it may be gone since.'),
  status: described(oneOf(['running', 'succeeded', 'failed']), 'How it is.'),
  started_at: described(timestamp(), 'When it was asked for.'),
  finished_at: described(nullable(timestamp()), 'When it ended; null while it runs.'),
  error: described(Type.String(), 'Why it failed, and what was touched; empty otherwise.'),
  log: described(Type.String(), 'What it did, one JSON object a line: `time` and `message`.')
}

export const databaseRestore = named('DatabaseRestore', object(fields), {
  description: 'A restore into a database.'
})
export const volumeRestore = named('VolumeRestore', object(fields), {
  description: 'A restore into a volume.'
})

export const restoreOf = (row: RestoreRow): Static<typeof databaseRestore> => ({
  id: row.id,
  backup_id: row.backup_id,
  status: row.status,
  started_at: row.started_at,
  finished_at: row.finished_at,
  error: row.error ?? '',
  log: row.log
})

export const databaseRestoreBody = named(
  'RestoreDatabase',
  object({
    backup_id: described(text({ min: 1, max: 36 }), 'The backup.'),
    from_other: described(
      maybe(Type.Boolean()),
      'That it is a backup of another database of the project, also of one that was deleted, is intended.'
    )
  }),
  {
    description: 'What is restored into the database. What is in it is replaced.',
    examples: [{ backup_id: '0199c0ff-ee00-8123-8456-000000000001' }]
  }
)

export const volumeRestoreBody = named(
  'RestoreVolumeBackup',
  object({
    target_volume_id: described(
      maybe(text({ max: 36 })),
      'Another volume of the project that it is restored into; left out: the one that it is a backup of.'
    )
  }),
  { description: 'Where it is restored. What is there is replaced.', examples: [{}] }
)

export const orphanedVolumeRestoreBody = named(
  'RestoreOrphanedVolumeBackup',
  object({
    target_volume_id: described(
      text({ min: 1, max: 36 }),
      'The volume of the project that it is restored into.'
    )
  }),
  {
    description: 'Where it is restored. What is there is replaced.',
    examples: [{ target_volume_id: '0199c0ff-ee00-8123-8456-000000000001' }]
  }
)

const nullableText = (words: string) => described(nullable(Type.String()), words)
const nullableInteger = (words: string) => described(nullable(Type.Integer()), words)

/** As the plugin of databases answers the creation of one. */
export const recreatedDatabase = named(
  'RecreatedDatabase',
  object({
    id: described(uuid(), 'What the new database is called in paths.'),
    project_id: described(uuid(), 'Its project.'),
    name: described(Type.String(), 'What people call it.'),
    slug: described(Type.String(), 'Its host name in the project.'),
    type: described(Type.String(), 'Its engine.'),
    version: described(Type.String(), 'The version of that.'),
    status: described(Type.String(), 'How it is: it is being made.'),
    image: nullableText('Its image.'),
    image_digest: nullableText('The digest that the image is pinned to.'),
    source_kind: nullableText('Where it comes from.'),
    source_ref: nullableText('What of that.'),
    backup_command: nullableText('How it is dumped, where that is its own.'),
    backup_mode: described(Type.String(), 'How backups of it are made.'),
    restore_command: nullableText('How it is restored, where that is its own.'),
    data_dir: nullableText('Where its data is in the container.'),
    internal_host: nullableText('By which host applications reach it.'),
    credentials_encrypted: described(Type.String(), 'A mark that there are credentials; never these.'),
    container_port: nullableInteger('The port that it listens on.'),
    host_port: nullableInteger('The port on this machine, where it has one.'),
    internal_port: nullableInteger('The port by which applications reach it.'),
    cpu_limit: described(Type.Number(), 'Cores; 0: no limit.'),
    memory_limit: described(Type.Integer(), 'Bytes; 0: no limit.'),
    container_missing: described(Type.Boolean(), 'Whether its container is gone.'),
    created_at: described(timestamp(), 'When it was made.'),
    external_access: described(
      nullable(
        object({
          enabled: described(Type.Boolean(), 'Whether it may be reached from outside of the project.'),
          host_port: described(Type.Integer(), 'The port on this machine.'),
          ssh_host: described(Type.String(), 'The host to open a tunnel to.'),
          ssh_user: described(Type.String(), 'The user to open it as.')
        })
      ),
      'How it is reached from outside.'
    ),
    volume: described(
      nullable(
        object({
          name: described(Type.String(), 'What its volume is called.'),
          size_bytes: described(Type.Integer(), 'How much is in it.')
        })
      ),
      'Where its data is.'
    )
  }),
  { description: 'A database that was made again from what was left of a deleted one.' }
)

/** As its source has answered. Of a volume that was just made nobody knows how much is in it: nothing yet. */
export function recreatedOf(answer: Readonly<Record<string, unknown>>): Static<typeof recreatedDatabase> {
  const { volume = null, ...rest } = answer as unknown as Static<typeof recreatedDatabase>
  const size: unknown = volume?.size_bytes
  return { ...rest, volume: volume && { ...volume, size_bytes: typeof size === 'number' ? size : 0 } }
}
