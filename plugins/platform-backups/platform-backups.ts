import { join, resolve } from 'node:path'
import { failedBackups } from 'busbar/api/platform'
import {
  type Contributor,
  configChecks,
  kernel,
  MisconfiguredError,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { platformStore, recoveryRecipients } from './api.js'
import { BackupRunner } from './backup-runner.js'
import { backupWarnings } from './backup-warnings.js'
import { RecoveryKeyService } from './recovery-key-service.js'
import { RemoteService } from './remote-service.js'
import { RemoteStore } from './remote-store.js'
import type { Retention } from './retention.js'
import { RunService } from './run-service.js'
import { RunStore } from './run-store.js'
import type { Settings } from './settings.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  schedules: kernel.schedules,
  events: kernel.events,
  secrets: kernel.secrets,
  clock: kernel.clock,
  instance: kernel.instance,
  installation: kernel.installation
}

/** The running plugin. */
export interface PlatformBackups {
  readonly runs: RunService
  readonly runner: BackupRunner
  readonly remotes: RemoteService
  readonly keys: RecoveryKeyService
  readonly store: RunStore
  readonly config: Settings
}

const scheduleKey = 'backup'

export async function startPlatformBackups({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<PlatformBackups> {
  const given = [config.s3_access_key, config.s3_secret_key].filter(one => one !== undefined)
  if (given.length > 0) onStop(use.secrets.redact(given))
  await schedule(use, config)
  const store = new RunStore(use.db)
  const remotes = new RemoteService({ ...use, store: new RemoteStore(use.db), config })
  const keys = new RecoveryKeyService({ ...use, given: config.encryption_key })
  const retention: Retention = {
    days: config.retain_days ?? config.default_retain_days,
    count: config.retain_count ?? config.default_retain_count
  }
  const directory = resolve(config.directory ?? join(use.installation.directory, 'backups', 'platform'))
  const runner = new BackupRunner({ ...use, store, remotes, keys, directory, retention, log })
  const runs = new RunService({ ...use, store, remotes, keys, runner, retention, log })
  return { runs, runner, remotes, keys, store, config }
}

/** One that was missed is made up for: the machine may be off at night. */
async function schedule(
  { schedules }: StartContext<typeof needs, Settings>['use'],
  { enabled, schedule: cron, time_zone: timeZone }: Settings
): Promise<void> {
  if (!enabled) {
    await schedules.remove(scheduleKey)
    return
  }
  try {
    if (schedules.preview({ cron, timeZone }, 1).length === 0)
      throw new Error('no day of the calendar is one that the expression names')
  } catch (error) {
    throw new MisconfiguredError(
      `schedule, time_zone: ${error instanceof Error ? error.message : String(error)}`
    )
  }
  await schedules.set(scheduleKey, { cron, timeZone, job: 'scheduled', payload: {}, missed: 'run-once' })
}

export function backupServices(provide: ServiceBinder, { keys, remotes }: PlatformBackups): void {
  provide(platformStore, { settings: async () => await remotes.settings() })
  provide(recoveryRecipients, { recipients: async () => await keys.recipients() })
}

export function backupContributions(
  contribute: Contributor,
  { store, keys, remotes, config }: PlatformBackups
): void {
  contribute(failedBackups, 'platform', { count: async () => ((await store.hasFailed()) ? 1 : 0) })
  contribute(configChecks, 'platform-backups', {
    warnings: async () => {
      const [last, { recipient }, recipients, remote] = await Promise.all([
        store.last(),
        keys.current(),
        keys.recipients().catch(() => []),
        remotes.view()
      ])
      return backupWarnings({
        isScheduled: config.enabled,
        hasSucceeded: last.last_succeeded_at !== null,
        hasRecoveryKey: recipient !== null,
        isEncrypted: recipients.length > 0,
        isUploaded: remote.isEnabled
      })
    }
  })
}
