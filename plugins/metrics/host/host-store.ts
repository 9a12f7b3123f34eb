import type { Database } from 'busbar/sdk'
import { keptSince, type Tier, type TimeRange, widthOf } from '../time-range.js'
import type { HostPoint } from './host-reading.js'

/** A point as clients get it. */
export interface HostRow {
  readonly recorded_at: Date
  readonly cpu_percent: number | null
  readonly memory_used: number | null
  readonly memory_total: number | null
  readonly disk_used: number | null
  readonly disk_total: number | null
}

/** From the points as they are measured to the coarsest: each is made of the one before. */
export const hostTiers = [
  { stepSeconds: 1, keptHours: 2 },
  { stepSeconds: 10, keptHours: 24 },
  { stepSeconds: 60, keptHours: 14 * 24 },
  { stepSeconds: 600, keptHours: 90 * 24 },
  { stepSeconds: 3600, keptHours: Number.POSITIVE_INFINITY }
] as const satisfies readonly Tier[]

const sizes = ['memory_used', 'memory_total', 'disk_used', 'disk_total', 'swap_used', 'swap_total'] as const
const averages = `round(cast(avg(cpu_percent) as numeric), 2) as cpu_percent, ${sizes.map(name => `round(avg(${name})) as ${name}`).join(', ')}`
const columns = `recorded_at, cpu_percent, ${sizes.join(', ')}`

/** A long outage may have left many to delete; others are not to wait for all of them. */
const deletedAtOnce = 10_000

export class HostStore {
  readonly #add

  constructor(private readonly db: Database) {
    this.#add = db.statement(
      'host-points-add',
      `insert into $schema.host_point (step, ${columns})
       select ${hostTiers[0].stepSeconds}, date_trunc('second', at), cpu, mu, mt, du, dt, su, st
       from unnest($1::timestamptz[], $2::real[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
         as point (at, cpu, mu, mt, du, dt, su, st)
       on conflict do nothing`
    )
  }

  /** What another process has written of the same second stays. */
  async add(points: readonly HostPoint[]): Promise<void> {
    if (points.length === 0) return
    await this.#add([
      points.map(({ recordedAt }) => recordedAt),
      points.map(({ cpuPercent }) => cpuPercent),
      points.map(({ memory }) => memory?.used ?? null),
      points.map(({ memory }) => memory?.total ?? null),
      points.map(({ disk }) => disk?.used ?? null),
      points.map(({ disk }) => disk?.total ?? null),
      points.map(({ swap }) => swap?.used ?? null),
      points.map(({ swap }) => swap?.total ?? null)
    ])
  }

  /** Averages of at most `mostPoints` parts of the range, the oldest first; a part without a point is left out. */
  async read(range: TimeRange, tier: Tier): Promise<HostRow[]> {
    return await this.db.sql<HostRow>(
      `select min(recorded_at) as recorded_at, ${averages} from $schema.host_point
       where step = :step and recorded_at >= :from and recorded_at < :to
       group by date_bin(:width * interval '1 millisecond', recorded_at, cast(:from as timestamptz)) order by 1`,
      { step: tier.stepSeconds, width: widthOf(range, tier), ...range }
    )
  }

  /**
   * Makes the coarser points of the finer ones, from the newest that there are, whose time may not have been over. Points of a time
   * that has not come, as a clock leaves them that was wrong, are none.
   */
  async rollUp(now: Date): Promise<void> {
    for (const [at, { stepSeconds: step }] of hostTiers.entries()) {
      const finer = hostTiers[at - 1]
      if (finer === undefined) continue
      await this.db.sql(
        `with since as (
           select coalesce(max(recorded_at), '-infinity') as at from $schema.host_point where step = :step and recorded_at <= :now
         )
         insert into $schema.host_point (step, ${columns})
         select cast(:step as integer), date_bin(:step * interval '1 second', recorded_at, 'epoch') as bin, ${averages}
         from $schema.host_point, since
         where step = :finer and recorded_at >= since.at and recorded_at <= :now group by bin
         on conflict (step, recorded_at) do update set cpu_percent = excluded.cpu_percent,
           ${sizes.map(name => `${name} = excluded.${name}`).join(', ')}`,
        { step, finer: finer.stepSeconds, now }
      )
    }
  }

  /** Deletes what is older than its tier or `retentionHours` keeps it. */
  async prune(retentionHours: number, now: Date): Promise<void> {
    for (const tier of hostTiers) {
      const since = keptSince(tier, retentionHours, now)
      let deleted: number
      do {
        const rows = await this.db.sql(
          `delete from $schema.host_point where step = :step and recorded_at in (
             select recorded_at from $schema.host_point where step = :step and recorded_at < :since
             order by recorded_at limit :most
           ) returning 1`,
          { step: tier.stepSeconds, since, most: deletedAtOnce }
        )
        deleted = rows.length
      } while (deleted === deletedAtOnce)
    }
  }
}
