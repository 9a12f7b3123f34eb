import {
  type AuditLog,
  type Clock,
  type ConfigCheck,
  type ConfigWarning,
  configChecks,
  type Database
} from 'busbar/sdk'
import type { Settings } from './config/environment.js'
import { settingsWarnings } from './config/settings-warnings.js'
import { type Environment, environmentKeys } from './secrets/key-source.js'
import type { ServiceRegistry } from './services/registry.js'

interface WarningParts {
  readonly settings: Settings
  readonly environment: Environment
  readonly database: Pick<Database, 'sql'>
  readonly audit: Pick<AuditLog, 'table'>
  readonly clock: Pick<Clock, 'now'>
}

/** Clocks that follow a time server differ by less, and codes of second factors are good for 30 s. */
const mostApartMs = 5_000
/** Several processes write, each by its own clock. */
const mostAheadMs = 60_000

/** What the kernel finds wrong with the configuration of the instance, beside what plugins do. */
export function contributeWarnings(
  registry: Pick<ServiceRegistry, 'contribute'>,
  { settings, environment, ...parts }: WarningParts
): void {
  const check: ConfigCheck = {
    warnings: async () => [
      ...settingsWarnings({ ...settings, keys: environmentKeys(environment)?.keys ?? new Map() }),
      ...(await clockWarnings(parts))
    ]
  }
  registry.contribute({ plugin: 'kernel', run: check }, configChecks, 'kernel', check)
}

async function clockWarnings({
  database,
  audit,
  clock
}: Pick<WarningParts, 'database' | 'audit' | 'clock'>): Promise<ConfigWarning[]> {
  const askedAt = clock.now().getTime()
  const [row] = await database.sql<{ now: Date; newest: Date | null }>(
    `select clock_timestamp() as now, (select created_at from ${audit.table} order by created_at desc, id desc limit 1) as newest`
  )
  const answeredAt = clock.now().getTime()
  if (row === undefined) return []
  const apartMs = Math.max(row.now.getTime() - answeredAt, askedAt - row.now.getTime())
  const behindMs = row.newest === null ? 0 : row.newest.getTime() - answeredAt
  return [
    ...(apartMs > mostApartMs
      ? [
          {
            code: 'database_clock',
            message: `the clocks of the platform and of its database differ by ${seconds(apartMs)}, so one of them is wrong: times in records cannot be compared, and sessions and codes of second factors may be refused`,
            remedy: 'let both machines follow a time server (timedatectl set-ntp true)'
          }
        ]
      : []),
    ...(behindMs > mostAheadMs
      ? [
          {
            code: 'clock_behind',
            message: `the clock of the platform is behind records that it has written itself, by ${seconds(behindMs)}: it is wrong now, or was then`,
            remedy: 'let the machine follow a time server (timedatectl set-ntp true)'
          }
        ]
      : [])
  ]
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`
