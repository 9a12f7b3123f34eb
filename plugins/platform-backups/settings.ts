import { described, fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  enabled: described(Type.Boolean({ default: true }), 'Whether backups are made by themselves.'),
  schedule: described(
    Type.String({ default: '0 2 * * *', minLength: 1, maxLength: 200 }),
    'When, as a cron expression of five fields.'
  ),
  time_zone: described(
    Type.String({ default: 'UTC', minLength: 1, maxLength: 64 }),
    'The time zone that the schedule is read in.'
  ),
  retain_days: described(
    maybe(Type.Integer({ minimum: 1, maximum: 3650 })),
    'How many days archives are kept; BACKUP_RETAIN_DAYS unless given.'
  ),
  retain_count: described(
    maybe(Type.Integer({ minimum: 1, maximum: 1000 })),
    'How many of the newest are kept however old they are; BACKUP_RETAIN_COUNT unless given.'
  ),
  default_retain_days: fromEnvironment(
    'BACKUP_RETAIN_DAYS',
    Type.Integer({ default: 30, minimum: 1, maximum: 3650 })
  ),
  default_retain_count: fromEnvironment(
    'BACKUP_RETAIN_COUNT',
    Type.Integer({ default: 14, minimum: 1, maximum: 1000 })
  ),
  directory: maybe(fromEnvironment('CONTROL_PLANE_BACKUP_DIR', Type.String())),
  encryption_key: maybe(
    fromEnvironment('BACKUP_ENCRYPTION_KEY', Type.String(), {
      takes: 'an age recipient (age1…), or the path of a file with one'
    })
  ),
  remote_enabled: fromEnvironment('BACKUP_REMOTE_ENABLED', Type.Boolean({ default: false })),
  s3_endpoint: maybe(fromEnvironment('BACKUP_S3_ENDPOINT', Type.String())),
  s3_region: fromEnvironment('BACKUP_S3_REGION', Type.String({ default: 'us-east-1' })),
  s3_bucket: maybe(fromEnvironment('BACKUP_S3_BUCKET', Type.String())),
  s3_prefix: fromEnvironment('BACKUP_S3_PREFIX', Type.String({ default: 'busbar/' })),
  s3_use_ssl: fromEnvironment('BACKUP_S3_USE_SSL', Type.Boolean({ default: true })),
  s3_access_key: maybe(fromEnvironment('BACKUP_S3_ACCESS_KEY', Type.String(), { secret: true })),
  s3_secret_key: maybe(fromEnvironment('BACKUP_S3_SECRET_KEY', Type.String(), { secret: true }))
})
export type Settings = Static<typeof settings>
