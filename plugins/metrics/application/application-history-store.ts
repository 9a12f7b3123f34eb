import { applicationTable } from 'busbar/api/applications'
import type { Database } from 'busbar/sdk'
import { keptSince, type Tier, type TimeRange, widthOf } from '../time-range.js'

/** What an application has used between one sample and the next. */
export interface ApplicationPoint {
  readonly applicationId: string
  readonly recordedAt: Date
  /** 100 is one core. */
  readonly cpuPercent: number
  readonly memoryBytes: number
  readonly memoryLimitBytes: number
  /** By the second. */
  readonly receivedBytes: number
  readonly sentBytes: number
}

/** A point as clients get it. */
export interface ApplicationPointRow {
  readonly recorded_at: Date
  readonly cpu_percent: number
  readonly memory_usage: number
  readonly memory_limit: number
  readonly network_rx_bytes_per_second: number
  readonly network_tx_bytes_per_second: number
}

/** As they are measured, and one for each hour. */
export const applicationTiers = [
  { stepSeconds: 60, keptHours: 24 },
  { stepSeconds: 3600, keptHours: Number.POSITIVE_INFINITY }
] as const satisfies readonly Tier[]
const [fine, hourly] = applicationTiers

const deletedAtOnce = 10_000

export class ApplicationHistoryStore {
  readonly #add

  constructor(private readonly db: Database) {
    // One that is being removed takes nothing more: its rows are gone already, or about to be.
    this.#add = db.statement(
      'application-points-add',
      `insert into $schema.application_point
         (application_id, step, recorded_at, cpu_percent, memory_used, memory_limit, received, sent)
       select point.id, ${fine.stepSeconds}, point.at, cpu, used, size, rx, tx
       from unnest($1::uuid[], $2::timestamptz[], $3::real[], $4::bigint[], $5::bigint[], $6::real[], $7::real[])
         as point (id, at, cpu, used, size, rx, tx)
       join ${applicationTable.name} a on a.id = point.id where a.deleting_at is null
       on conflict do nothing`
    )
  }

  async add(points: readonly ApplicationPoint[]): Promise<void> {
    if (points.length === 0) return
    await this.#add([
      points.map(({ applicationId }) => applicationId),
      points.map(({ recordedAt }) => recordedAt),
      points.map(({ cpuPercent }) => cpuPercent),
      points.map(({ memoryBytes }) => Math.round(memoryBytes)),
      points.map(({ memoryLimitBytes }) => Math.round(memoryLimitBytes)),
      points.map(({ receivedBytes }) => receivedBytes),
      points.map(({ sentBytes }) => sentBytes)
    ])
  }

  /** Averages of at most `mostPoints` parts of the range, the oldest first; a part without a point is left out. */
  async read(applicationId: string, range: TimeRange, tier: Tier): Promise<ApplicationPointRow[]> {
    return await this.db.sql<ApplicationPointRow>(
      `select min(recorded_at) as recorded_at, round(cast(avg(cpu_percent) as numeric), 2) as cpu_percent,
         round(avg(memory_used)) as memory_usage, round(avg(memory_limit)) as memory_limit,
         round(cast(avg(received) as numeric)) as network_rx_bytes_per_second,
         round(cast(avg(sent) as numeric)) as network_tx_bytes_per_second
       from $schema.application_point
       where application_id = :applicationId and step = :step and recorded_at >= :from and recorded_at < :to
       group by date_bin(:width * interval '1 millisecond', recorded_at, cast(:from as timestamptz)) order by 1`,
      { applicationId, step: tier.stepSeconds, width: widthOf(range, tier), ...range }
    )
  }

  /** Makes the points of the hours from those as they were measured, from the newest hour that there is, which may not have been over. */
  async rollUp(now: Date): Promise<void> {
    await this.db.sql(
      `with since as (
         select coalesce(max(recorded_at), '-infinity') as at from $schema.application_point
         where step = :hourly and recorded_at <= :now
       )
       insert into $schema.application_point
         (application_id, step, recorded_at, cpu_percent, memory_used, memory_limit, received, sent)
       select application_id, cast(:hourly as integer), date_bin('1 hour', recorded_at, 'epoch') as bin,
         avg(cpu_percent), round(avg(memory_used)), round(avg(memory_limit)), avg(received), avg(sent)
       from $schema.application_point, since
       where step = :fine and recorded_at >= since.at and recorded_at <= :now group by application_id, bin
       on conflict (application_id, step, recorded_at) do update set cpu_percent = excluded.cpu_percent,
         memory_used = excluded.memory_used, memory_limit = excluded.memory_limit,
         received = excluded.received, sent = excluded.sent`,
      { hourly: hourly.stepSeconds, fine: fine.stepSeconds, now }
    )
  }

  async prune(retentionHours: number, now: Date): Promise<void> {
    for (const tier of applicationTiers) {
      const since = keptSince(tier, retentionHours, now)
      let deleted: number
      do {
        const rows = await this.db.sql(
          `delete from $schema.application_point where ctid = any(array(
             select ctid from $schema.application_point where step = :step and recorded_at < :since
             order by recorded_at limit :most
           )) returning 1`,
          { step: tier.stepSeconds, since, most: deletedAtOnce }
        )
        deleted = rows.length
      } while (deleted === deletedAtOnce)
    }
  }

  async remove(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.application_point where application_id = ?', [applicationId])
  }
}
