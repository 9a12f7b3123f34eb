import type { JobDeclarer, ScheduleDeclarer } from 'busbar/sdk'
import type { Backups } from './backups.js'
import { jobLimitMs } from './runs/run-limit.js'

/** Files may be many, and at stores that are slow. */
const sweepLimitMs = 3_600_000

export function jobs(job: JobDeclarer<Backups>) {
  // A run fails in its record. Attempts are for a process that dies, and a database that is away.
  job<{ readonly backupId: string }>({
    name: 'backup',
    lane: 'long',
    attempts: 5,
    waitsForTenants: true,
    timeoutMs: jobLimitMs,
    run: async ({ backupId }, { signal }, { runner }) => {
      await runner.run(backupId, signal)
    }
  })
  job<{ readonly restoreId: string }>({
    name: 'restore',
    lane: 'long',
    attempts: 5,
    waitsForTenants: true,
    timeoutMs: jobLimitMs,
    run: async ({ restoreId }, { signal }, { restoreRunner }) => {
      await restoreRunner.run(restoreId, signal)
    }
  })
  job<{ readonly backupId: string }>({
    name: 'drill',
    lane: 'long',
    // More than it takes up itself: the record is to say that it has given up.
    attempts: 25,
    waitsForTenants: true,
    timeoutMs: jobLimitMs,
    run: async ({ backupId }, { attempt, signal }, { drills }) => {
      await drills.run(backupId, attempt, signal)
    }
  })
  job<{ readonly configId: string }>({
    name: 'due',
    attempts: 3,
    run: async ({ configId }, _context, { due }) => {
      await due.begin(configId)
    }
  })
  job<{ readonly configId: string }>({
    name: 'due-again',
    attempts: 25,
    run: async ({ configId }, _context, { due }) => {
      await due.again(configId)
    }
  })
  job<{ readonly configId: string }>({
    name: 'drill-due',
    attempts: 3,
    run: async ({ configId }, _context, { drills }) => {
      await drills.beginDue(configId)
    }
  })
  job<{ readonly backupId: string }>({
    name: 'erase',
    attempts: 8,
    waitsForTenants: true,
    run: async ({ backupId }, { signal }, { deletions }) => {
      await deletions.erase(backupId, signal)
    }
  })
  job<object>({
    name: 'sweep',
    lane: 'long',
    attempts: 3,
    timeoutMs: sweepLimitMs,
    run: async (_payload, { signal }, { left, waiting, deletions, settings }) => {
      await left.takeUp()
      await waiting.takeUp()
      await deletions.sweep(settings.orphaned_backup_retention_days, signal)
    }
  })
}

export function schedules(schedule: ScheduleDeclarer<Backups>) {
  schedule({
    name: 'tidy',
    cron: '17 4 * * *',
    missed: 'run-once',
    lane: 'long',
    timeoutMs: sweepLimitMs,
    run: async ({ signal }, { orphans, left, waiting, deletions, settings }) => {
      await left.takeUp()
      await waiting.takeUp()
      await orphans.notice(signal)
      await deletions.sweep(settings.orphaned_backup_retention_days, signal)
    }
  })
}
