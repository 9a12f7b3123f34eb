import type { Clock, Database, Log, Schedules, ScheduleTimes, Tx } from 'busbar/sdk'
import type { BackupResource } from '../api.js'
import { problems } from '../problems.js'
import type { RestoreStore } from '../restores/restore-store.js'
import type { BackupRunner } from '../runs/backup-runner.js'
import { type BackupService, newBackup } from '../runs/backup-service.js'
import type { BackupStore } from '../runs/backup-store.js'
import type { LeftRuns } from '../runs/left-runs.js'
import { runFailure } from '../runs/run-failure.js'
import type { SourceRow, SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import { planOf, runKey } from './config-plan.js'
import type { ConfigOfSource, ConfigStore } from './config-store.js'
import type { WaitingConfigs } from './waiting-configs.js'

interface DueParts {
  readonly db: Database
  readonly schedules: Schedules
  readonly clock: Clock
  readonly log: Log
  readonly store: ConfigStore
  readonly backups: BackupService
  readonly runs: BackupStore
  readonly restores: RestoreStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly runner: Pick<BackupRunner, 'failWithout'>
  readonly left: LeftRuns
  readonly waiting: WaitingConfigs
}

/** How its source is now. */
interface Look {
  /** Null where it cannot be asked. */
  readonly resource: BackupResource | null
  /** Why no backup can begin, and whether that passes by itself. */
  readonly refusal: string | null
  readonly passes: boolean
}

/**
 * What schedules ask for at their times, which has nobody to tell: what refuses is a backup that has failed. What is under way
 * already is waited for, up to the next time.
 */
export class DueRuns {
  constructor(private readonly parts: DueParts) {}

  /** The job of a schedule. */
  async begin(id: string): Promise<void> {
    const config = await this.parts.store.find(id)
    if (config?.enabled !== true) return
    const dueAt = (await this.#times(id))?.lastAt ?? this.parts.clock.now()
    await this.#try(config, dueAt, { isNew: true })
  }

  /** The job of one that waits. */
  async again(id: string): Promise<void> {
    const { store, clock } = this.parts
    const config = await store.find(id)
    if (config?.enabled !== true || config.waits_since === null) return
    const times = await this.#times(id)
    // It is due once more: that job says that this time was missed, and makes one for both.
    if (isBefore(config.waits_since, times?.lastAt) || !isBefore(clock.now(), times?.nextAt ?? never)) return
    await this.#try(config, config.waits_since, { isNew: false })
  }

  async #times(id: string): Promise<ScheduleTimes | undefined> {
    return (await this.parts.schedules.times([runKey(id)])).get(runKey(id))
  }

  async #try(config: ConfigOfSource, dueAt: Date, { isNew }: { readonly isNew: boolean }): Promise<void> {
    const { db, log, left } = this.parts
    const look = await this.#look(config)
    if (look === undefined) return
    const obstacle = await db.transaction(async tx => await this.#decide(config, look, { dueAt, isNew }, tx))
    if (obstacle === null) return
    const told = { configId: config.id, dueAt, reason: obstacle }
    if (isNew) log.info(told, 'a backup is due and waits')
    else log.debug(told, 'a backup that is due still waits')
    // It may be one that nobody works at.
    await left.takeUp(config.source_id)
  }

  /** Undefined where it was deleted. */
  async #look({ kind, resource_id: id, project_id: project }: ConfigOfSource): Promise<Look | undefined> {
    const { sources, log } = this.parts
    if (!sources.isThere(kind))
      return { resource: null, refusal: problems.sourceOff({ kind }).message, passes: false }
    try {
      const resource = await sources.look(kind, id, project)
      if (resource === undefined) return undefined
      return { resource, refusal: resource.backupRefusal, passes: resource.refusalPasses === true }
    } catch (error) {
      log.warn({ err: error, kind, resourceId: id }, 'a backup is due, and its source does not say how it is')
      return { resource: null, refusal: runFailure(error), passes: true }
    }
  }

  /** What it waits for from now on; null where it was begun, has failed, or is nobody's business any more. */
  async #decide(
    { id, source_id: sourceId, kind }: ConfigOfSource,
    look: Look,
    { dueAt, isNew }: { readonly dueAt: Date; readonly isNew: boolean },
    tx: Tx
  ): Promise<string | null> {
    const { clock, log, store, backups, runs, sourceStore, runner, waiting } = this.parts
    const { resource } = look
    const source =
      resource === null ? await sourceStore.lock(sourceId, tx) : await sourceStore.hold(kind, resource, tx)
    // Under the lock of its source: whoever looks at the same time looks after this.
    const config = await store.find(id, tx)
    if (source === undefined || source.deleted_at !== null || config?.enabled !== true) return null
    const now = clock.now()
    const since = config.waits_since
    if (isNew ? isServed(config, dueAt, now) : since?.getTime() !== dueAt.getTime()) return null
    const running = await runs.runningOf(source.id, tx)
    if (running?.config_id === id) {
      log.info({ configId: id, dueAt }, 'a backup is due while the last one of its schedule is being made')
      return null
    }
    if (since !== null && since.getTime() !== dueAt.getTime())
      await this.#failMissed(config, source, since, tx)
    const obstacle = await this.#obstacle(source, { isRunning: running !== undefined, look }, tx)
    if (obstacle !== null) {
      await waiting.wait(config, { since: dueAt, what: obstacle }, tx)
      return obstacle
    }
    const backup = newBackup(source, planOf(config), now)
    if (look.refusal === null) await backups.add(backup, tx)
    else await runner.failWithout(backup, source, look.refusal, tx)
    await store.ran(id, now, tx)
    return null
  }

  async #obstacle(
    { id }: SourceRow,
    { isRunning, look }: { readonly isRunning: boolean; readonly look: Look },
    tx: Tx
  ): Promise<string | null> {
    if (isRunning) return 'another backup was being made'
    if (await this.parts.restores.running(id, tx)) return 'a restore was under way'
    return look.passes ? look.refusal : null
  }

  async #failMissed(config: ConfigOfSource, source: SourceRow, since: Date, tx: Tx): Promise<void> {
    const reason = `what was due at ${since.toISOString()} could not begin before it was due again: ${config.waits_for ?? 'other work was under way'}`
    await this.parts.runner.failWithout(newBackup(source, planOf(config), since), source, reason, tx)
  }
}

/** No further time matches. */
const never = new Date(8.64e15)
const isBefore = (one: Date, other: Date | null | undefined): boolean => other != null && one < other

/** It ran already, and its job is here again: the process was killed behind the commit. A clock that was wrong then says nothing. */
const isServed = ({ last_run_at: last }: ConfigOfSource, dueAt: Date, now: Date): boolean =>
  last !== null && last >= dueAt && last <= now
