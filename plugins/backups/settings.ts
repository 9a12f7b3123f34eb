import { described, fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'
import { parseHostPolicy } from 'busbar/sdk/http1'
import { mostMinutes } from './runs/run-limit.js'

export const settings = object({
  orphaned_backup_retention_days: described(
    Type.Integer({ default: 90, minimum: 0, maximum: 3650 }),
    'How many days backups of a database or a volume are kept after it was deleted; 0: for ever.'
  ),
  drill_schedule: described(
    Type.String({ default: '30 3 * * 0', maxLength: 200 }),
    'When the newest backup of a schedule is restored into a throwaway copy, as a cron expression of five fields, where the schedule says nothing; empty: never.'
  ),
  time_zone: described(
    Type.String({ default: 'UTC', minLength: 1, maxLength: 64 }),
    'The time zone that schedules are read in where they name none.'
  ),
  run_limit_minutes: described(
    Type.Integer({ default: 24 * 60, minimum: 1, maximum: mostMinutes }),
    'How many minutes a backup, a restore or a drill may take: one that takes longer has failed.'
  ),
  directory: maybe(fromEnvironment('DATABASE_BACKUP_DIR', Type.String())),
  private_hosts: maybe(
    fromEnvironment(
      'BACKUP_PRIVATE_HOSTS',
      Type.String({
        description:
          'Private hosts that destinations may be at; allow while the platform listens on loopback only, else deny'
      }),
      {
        takes: 'allow, deny, or host names, addresses and ranges such as 10.0.0.0/8, separated by commas',
        parse: parseHostPolicy
      }
    )
  ),
  retain_count: fromEnvironment(
    'DATABASE_BACKUP_RETAIN_COUNT',
    Type.Integer({ default: 7, minimum: 1, maximum: 1000 })
  )
})
export type Settings = Static<typeof settings>
