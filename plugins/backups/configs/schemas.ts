import {
  described,
  list,
  maybe,
  named,
  nullable,
  object,
  type Static,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'
import type { ConfigView } from './config-service.js'

const common = {
  id: described(uuid(), 'What the schedule is called in paths.'),
  destination_id: described(uuid(), 'The destination that its backups are kept at.'),
  schedule: described(Type.String(), 'When backups are made, as a cron expression of five fields.'),
  time_zone: described(Type.String(), 'The time zone that schedules are read in.'),
  drill_schedule: described(
    Type.String(),
    'When the newest backup is restored into a throwaway copy, as a proof; empty: never.'
  ),
  prefix: described(Type.String(), 'What keys begin with, behind the prefix of the destination.'),
  keep_latest: described(nullable(Type.Integer()), 'How many backups are kept; null: all of them.'),
  enabled: described(Type.Boolean(), 'Whether backups are made by themselves.'),
  last_run_at: described(nullable(timestamp()), 'When a backup was last begun; null before the first.'),
  next_run_at: described(nullable(timestamp()), 'When the next is due; null where none is.'),
  created_at: described(timestamp(), 'When the schedule was made.')
}

export const databaseConfig = named(
  'DatabaseBackupConfig',
  object({
    ...common,
    database_id: described(uuid(), 'The database that is backed up.'),
    databases: described(list(Type.String()), 'Which of the databases in it; empty: all.'),
    all_databases: described(Type.Boolean(), 'Whether all of them are backed up.'),
    updated_at: described(timestamp(), 'When it was changed last.')
  }),
  { description: 'When backups of a database are made by themselves, and what becomes of old ones.' }
)

const volume = {
  ...common,
  application_volume_id: described(uuid(), 'The volume that is backed up.'),
  quiesce: described(Type.Boolean(), 'Whether the application is stopped while the volume is read.')
}

export const volumeConfig = named('VolumeBackupConfig', object(volume), {
  description: 'When backups of a volume are made by themselves, and what becomes of old ones.'
})

export const applicationVolumeConfig = named(
  'ApplicationVolumeBackupConfig',
  object({
    ...volume,
    volume_name: described(Type.String(), 'What the volume is called.'),
    mount_path: described(Type.String(), 'Where it is mounted.')
  }),
  { description: 'The same in a list of all volumes of an application.' }
)

const input = {
  destination_id: described(
    maybe(text({ max: 36 })),
    'A destination of the project. Required when the schedule is made.'
  ),
  schedule: described(
    maybe(text({ max: 200 })),
    'When, as a cron expression of five fields: `0 3 * * *`. Required when the schedule is made.'
  ),
  time_zone: described(
    maybe(text({ max: 64 })),
    'The time zone of the schedules, such as `Europe/Berlin`; that of the installation unless given.'
  ),
  drill_schedule: described(
    maybe(text({ max: 200 })),
    'When the newest backup is restored into a throwaway copy; empty: never. That of the installation unless given.'
  ),
  prefix: described(maybe(text({ max: 500 })), 'What keys begin with.'),
  keep_latest: described(
    maybe(nullable(Type.Integer({ minimum: 1, maximum: 100_000 }))),
    'How many backups are kept; null, and unless given: all of them.'
  ),
  enabled: described(
    maybe(nullable(Type.Boolean())),
    'Whether backups are made by themselves; they are unless given.'
  )
}

const example = {
  destination_id: '0199c0ff-ee00-8123-8456-000000000001',
  schedule: '0 3 * * *',
  time_zone: 'Europe/Berlin',
  keep_latest: 14
}

export const databaseConfigBody = named(
  'SetDatabaseBackupConfig',
  object({
    ...input,
    databases: described(
      maybe(Type.Array(text({ min: 1, max: 200 }), { maxItems: 1000 })),
      'Which of the databases in it; empty, and unless given: all. Engines without databases to choose from, such as Redis, take none.'
    )
  }),
  {
    description: 'A schedule. When it is changed, what is left out stays as it is.',
    examples: [{ ...example, databases: [] }]
  }
)

export const volumeConfigBody = named(
  'SetVolumeBackupConfig',
  object({
    ...input,
    quiesce: described(
      maybe(Type.Boolean()),
      'Whether the application is stopped while the volume is read; it is not unless given.'
    )
  }),
  {
    description: 'A schedule. When it is changed, what is left out stays as it is.',
    examples: [{ ...example, quiesce: true }]
  }
)

export const configParams = { configId: described(uuid(), 'The `id` of the schedule.') }

const commonOf = (view: ConfigView) => ({
  id: view.id,
  destination_id: view.destination_id,
  schedule: view.schedule,
  time_zone: view.time_zone,
  drill_schedule: view.drill_schedule,
  prefix: view.prefix,
  keep_latest: view.keep_latest,
  enabled: view.enabled,
  last_run_at: view.last_run_at,
  next_run_at: view.next_run_at,
  created_at: view.created_at
})

export const databaseConfigOf = (view: ConfigView): Static<typeof databaseConfig> => ({
  ...commonOf(view),
  database_id: view.resource_id,
  databases: [...view.databases],
  all_databases: view.databases.length === 0,
  updated_at: view.updated_at
})

export const volumeConfigOf = (view: ConfigView): Static<typeof volumeConfig> => ({
  ...commonOf(view),
  application_volume_id: view.resource_id,
  quiesce: view.quiesce
})

export const applicationVolumeConfigOf = (view: ConfigView): Static<typeof applicationVolumeConfig> => ({
  ...volumeConfigOf(view),
  volume_name: view.resource_name,
  mount_path: view.mount_path ?? ''
})
