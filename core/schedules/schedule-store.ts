import type { Database, MissedRuns, Recurrence, Tx } from 'busbar/sdk'

export interface ScheduleRow extends Required<Recurrence> {
  readonly plugin: string
  readonly key: string
  readonly job: string
  readonly payload: object
  readonly missed: MissedRuns
  readonly nextAt: Date | null
}

interface StoredRow {
  readonly plugin: string
  readonly key: string
  readonly cron: string
  readonly time_zone: string
  readonly job: string
  readonly payload: object
  readonly missed: MissedRuns
  readonly next_at: Date | null
  readonly last_at: Date | null
}

export type NewSchedule = ScheduleRow & { readonly isDeclared: boolean }

/** `nextAt` stays null once no further time matches; `lastAt` is null when the time was left out. */
interface Fired {
  readonly plugin: string
  readonly key: string
  readonly nextAt: Date | null
  readonly lastAt: Date | null
}

/** The table `kernel.schedule`. */
export class ScheduleStore {
  constructor(private readonly db: Database) {}

  async transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    return await this.db.transaction(run)
  }

  /** Writes each; one whose expression is the same keeps its next time, so that a missed one is noticed. */
  async put(
    schedules: readonly NewSchedule[],
    tx?: Tx
  ): Promise<ReadonlyArray<Pick<StoredRow, 'next_at' | 'last_at'>>> {
    return await this.db.sql(
      `
      insert into $schema.schedule (plugin, key, declared, cron, time_zone, job, payload, missed, next_at)
      select plugin, key, declared, cron, time_zone, job, payload, missed, next_at
      from jsonb_to_recordset(:rows::jsonb) as given
        (plugin text, key text, declared boolean, cron text, time_zone text, job text, payload jsonb, missed text, next_at timestamptz)
      on conflict (plugin, key) do update set
        cron = excluded.cron, time_zone = excluded.time_zone, job = excluded.job, payload = excluded.payload, missed = excluded.missed,
        next_at = case when (schedule.cron, schedule.time_zone) = (excluded.cron, excluded.time_zone) then schedule.next_at else excluded.next_at end
      returning next_at, last_at`,
      { rows: JSON.stringify(schedules.map(rowOf)) },
      tx
    )
  }

  /** Removes the declared schedules of a plugin that are not in `keys`. */
  async removeUndeclared(plugin: string, keys: readonly string[], tx: Tx): Promise<void> {
    await this.db.sql(
      'delete from $schema.schedule where plugin = :plugin and declared and key <> all(:keys)',
      { plugin, keys: [...keys] },
      tx
    )
  }

  async remove(plugin: string, key: string, tx?: Tx): Promise<void> {
    await this.db.sql('delete from $schema.schedule where plugin = ? and key = ?', [plugin, key], tx)
  }

  async times(
    plugin: string,
    keys: readonly string[]
  ): Promise<ReadonlyArray<Pick<StoredRow, 'key' | 'next_at' | 'last_at'>>> {
    return await this.db.sql(
      'select key, next_at, last_at from $schema.schedule where plugin = :plugin and key = any(:keys)',
      { plugin, keys: [...keys] }
    )
  }

  /** Locks the schedules of these plugins whose time has come; another process passes over them. */
  async due(plugins: readonly string[], now: Date, atMost: number, tx: Tx): Promise<ScheduleRow[]> {
    const rows = await this.db.sql<StoredRow>(
      `
      select plugin, key, cron, time_zone, job, payload, missed, next_at, last_at from $schema.schedule
      where next_at <= :now and plugin = any(:plugins) order by next_at limit :atMost for update skip locked`,
      { now, plugins: [...plugins], atMost },
      tx
    )
    return rows.map(({ plugin, key, cron, time_zone: timeZone, job, payload, missed, next_at: nextAt }) => ({
      plugin,
      key,
      cron,
      timeZone,
      job,
      payload,
      missed,
      nextAt
    }))
  }

  async recordFired(fired: readonly Fired[], tx: Tx): Promise<void> {
    await this.db.sql(
      `
      update $schema.schedule set next_at = given.next_at, last_at = coalesce(given.last_at, schedule.last_at)
      from jsonb_to_recordset(:rows::jsonb) as given (plugin text, key text, next_at timestamptz, last_at timestamptz)
      where (schedule.plugin, schedule.key) = (given.plugin, given.key)`,
      {
        rows: JSON.stringify(
          fired.map(({ plugin, key, nextAt, lastAt }) => ({ plugin, key, next_at: nextAt, last_at: lastAt }))
        )
      },
      tx
    )
  }

  /** The first time at which a schedule of these plugins is due; undefined without one. */
  async nextDue(plugins: readonly string[]): Promise<Date | undefined> {
    const [row] = await this.db.sql<{ at: Date | null }>(
      'select min(next_at) as at from $schema.schedule where plugin = any(:plugins)',
      { plugins: [...plugins] }
    )
    return row?.at ?? undefined
  }
}

const rowOf = ({
  plugin,
  key,
  isDeclared,
  cron,
  timeZone,
  job,
  payload,
  missed,
  nextAt
}: NewSchedule): object => ({
  plugin,
  key,
  declared: isDeclared,
  cron,
  time_zone: timeZone,
  job,
  payload,
  missed,
  next_at: nextAt
})
