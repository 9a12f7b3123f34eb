import type { Database } from 'busbar/sdk'
import { type Chunk, longestSpanMs, mostLines } from './chunk.js'
import type { HistoryFilter } from './history-filter.js'

/** A chunk as it is read. */
export interface KeptChunk extends Pick<Chunk, 'lines' | 'beginsAt' | 'times' | 'kinds' | 'text'> {
  /** Of its first line; the others follow. */
  readonly ordinal: number
  readonly container_id: string
  readonly deployment_id: string | null
}

/** A chunk that was looked at: the next ones end no later. */
export interface LookedAt {
  readonly ordinal: number
  readonly endsAt: number
}

interface ChunkRow extends Omit<KeptChunk, 'beginsAt'> {
  readonly begins_at: Date
}

/** What one container has written. */
interface SessionRow {
  readonly container_id: string
  readonly deployment_id: string | null
  readonly first_at: Date | null
  readonly last_at: Date | null
  readonly line_count: number
}

const keptChunk = ({ begins_at: beginsAt, ...row }: ChunkRow): KeptChunk => ({
  ...row,
  beginsAt: beginsAt.getTime()
})

const columns = 'c.ordinal, c.lines, c.begins_at, c.times, c.kinds, c.text, k.container_id, k.deployment_id'

/** Reads what is kept. */
export class LogStore {
  readonly #after
  readonly #progress

  constructor(private readonly db: Database) {
    this.#after = db.statement<ChunkRow, [string, number, number, string | null, number]>(
      'lines-after',
      `
      with next as (
        select ordinal, bytes + lines * 80 as bytes from $schema.chunk
        where source_id = $1 and ordinal > $2 - ${mostLines} and ordinal + lines > $2 and ordinal < $3
          and ($4::text is null or container_key = (select key from $schema.container where container_id = $4))
        order by ordinal limit 100
      ), few as (
        select ordinal from (select ordinal, bytes, sum(bytes) over (order by ordinal) as total from next) as sums
        where total <= $5 or total = bytes
      )
      select ${columns} from few join $schema.chunk c on c.ordinal = few.ordinal
      join $schema.container k on k.key = c.container_key order by c.ordinal`
    )
    this.#progress = db.statement<{ id: string; next: number }, [readonly string[]]>(
      'log-progress',
      `
      select s.id, coalesce(last.next, 0) as next from $schema.source s
      left join lateral (
        select ordinal + lines as next from $schema.chunk where source_id = s.id order by ordinal desc limit 1
      ) last on true where s.id = any($1)`
    )
  }

  /**
   * The next chunks that may hold something of what is wanted, the one that ends last first: those of `limit` chunks behind the one that was
   * looked at last, without those in which nothing can be. `end` is the last one that was looked at; undefined when there is no other.
   */
  async latest(
    sourceId: string,
    { mask, fragment, since, until, session, behind }: HistoryFilter,
    lookedAt: LookedAt | undefined,
    limit: number
  ): Promise<{ readonly chunks: KeptChunk[]; readonly end: LookedAt | undefined; readonly isLast: boolean }> {
    const before = Math.min(until, behind === undefined ? Number.POSITIVE_INFINITY : behind.ms + 1)
    const bindings = {
      sourceId,
      limit,
      mask,
      session: session ?? null,
      // What ends later than so has begun later than what is wanted.
      beginsBefore: dateOf(before),
      endsBefore: dateOf(before + longestSpanMs),
      endsFrom: dateOf(since),
      lastEnd: lookedAt === undefined ? null : new Date(lookedAt.endsAt),
      lastOrdinal: lookedAt?.ordinal ?? null,
      fragment: fragment ?? null
    }
    const rows = await this.db.sql<ChunkRow & { readonly ends_at: Date; readonly is_wanted: boolean }>(
      `
      select c.ordinal, c.lines, c.begins_at, c.ends_at, k.container_id, k.deployment_id, w.is_wanted,
        case when w.is_wanted then c.times else '' end as times, case when w.is_wanted then c.kinds else '' end as kinds,
        case when w.is_wanted then c.text else '' end as text
      from (
        select * from $schema.chunk
        where source_id = :sourceId
          and ends_at < coalesce(cast(:endsBefore as timestamptz), 'infinity')
          and ends_at >= coalesce(cast(:endsFrom as timestamptz), '-infinity')
          and (cast(:lastOrdinal as bigint) is null or (ends_at, ordinal) < (cast(:lastEnd as timestamptz), cast(:lastOrdinal as bigint)))
        order by ends_at desc, ordinal desc limit :limit
      ) c
      join $schema.container k on k.key = c.container_key
      cross join lateral (
        select c.mask & cast(:mask as smallint) <> 0
          and c.begins_at < coalesce(cast(:beginsBefore as timestamptz), 'infinity')
          and (cast(:session as text) is null or starts_with(k.container_id, :session))
          and (cast(:fragment as text) is null or position(cast(:fragment as text) in lower(c.text)) > 0) as is_wanted
      ) w
      order by c.ends_at desc, c.ordinal desc`,
      bindings
    )
    const last = rows.at(-1)
    return {
      chunks: rows
        .filter(row => row.is_wanted)
        .map(({ ends_at: _, is_wanted: __, ...row }) => keptChunk(row)),
      end: last === undefined ? undefined : { ordinal: last.ordinal, endsAt: last.ends_at.getTime() },
      isLast: rows.length < limit
    }
  }

  /** The next chunks of a source, or of one container of it, in the order in which they were kept: about `bytes` of what is made of them for a reader, at least one. */
  async after(
    sourceId: string,
    range: {
      readonly from: number
      readonly below?: number | undefined
      readonly containerId?: string | undefined
    },
    bytes: number
  ): Promise<KeptChunk[]> {
    const { from, below = Number.MAX_SAFE_INTEGER, containerId = null } = range
    return (await this.#after([sourceId, from, below, containerId, bytes])).map(keptChunk)
  }

  /** Behind the last line of each of these sources that is known. */
  async progress(sourceIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#progress([sourceIds])
    return new Map(rows.map(({ id, next }) => [id, next]))
  }

  /** Undefined when nothing is known of the source. */
  async typeOf(sourceId: string): Promise<string | undefined> {
    const [row] = await this.db.sql<{ type: string }>('select type from $schema.source where id = ?', [
      sourceId
    ])
    return row?.type
  }

  /** How many lines are kept, of a source or of those of its containers whose id begins so. */
  async count(sourceId: string, session: string | undefined): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      `
      select coalesce(sum(lines), 0) as total from $schema.container
      where source_id = :sourceId and (cast(:session as text) is null or starts_with(container_id, :session))`,
      { sourceId, session: session ?? null }
    )
    return row?.total ?? 0
  }

  async sessions(sourceId: string, limit: number): Promise<SessionRow[]> {
    return await this.db.sql<SessionRow>(
      `
      select container_id, deployment_id, first_at, last_at, lines as line_count from $schema.container
      where source_id = :sourceId and lines > 0 order by last_at desc, key desc limit :limit`,
      { sourceId, limit }
    )
  }

  /** The container of a deployment that was seen last. */
  async containerOf(sourceId: string, deploymentId: string): Promise<string | undefined> {
    const [row] = await this.db.sql<{ container_id: string }>(
      `
      select container_id from $schema.container where source_id = ? and deployment_id = ? order by key desc limit 1`,
      [sourceId, deploymentId]
    )
    return row?.container_id
  }
}

/** Null for what no `Date` can say. */
const dateOf = (ms: number): Date | null => {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? null : date
}
