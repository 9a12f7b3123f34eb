import { applicationTable } from 'busbar/api/applications'
import type { Database, Tx } from 'busbar/sdk'
import type { Chunk } from '../kept/chunk.js'

/** A container whose output is to be kept. */
export interface SeenContainer {
  readonly containerId: string
  readonly deploymentId: string | undefined
  readonly sourceId: string
  readonly sourceType: string
}

/** The same, as it is known. */
export interface KnownContainer extends SeenContainer {
  readonly key: number
  /** Up to where its output is kept. */
  readonly place: string | undefined
  /** The start of the run of it whose output is kept to its end. */
  readonly endedRun: string | undefined
}

/** Chunks of one container, with the place behind them. */
interface KeptChunks {
  readonly key: number
  readonly place: string
  readonly chunks: readonly Chunk[]
}

/** The only collector that may write. */
export interface Turn {
  readonly epoch: number
  /** The ordinal of the next line of all. */
  readonly nextOrdinal: number
}

interface Written {
  readonly first: number
  /** Of the containers of which lines were kept. */
  readonly keys: readonly number[]
  readonly sources: ReadonlyArray<{ readonly id: string; readonly bytes: number }>
}

type WriteArguments = readonly [
  lines: number,
  epoch: number,
  nextOrdinal: number,
  keys: readonly number[],
  places: readonly string[],
  chunkKeys: readonly number[],
  offsets: readonly number[],
  lineCounts: readonly number[],
  bytes: readonly number[],
  beginsAt: readonly Date[],
  endsAt: readonly Date[],
  masks: readonly number[],
  times: readonly string[],
  kinds: readonly string[],
  texts: readonly string[]
]

/** What the collector writes, and what it goes by. */
export class CollectStore {
  readonly #db: Database
  readonly #write

  constructor(db: Database) {
    this.#db = db
    // One statement, so that lines, places and ordinals are written together or not at all. The row of the collector keeps two of them
    // from writing at once, and so the ordinals become visible in their order.
    this.#write = db.statement<Written, WriteArguments>(
      'write-lines',
      `
      with turn as (
        update $schema.collector set next_ordinal = next_ordinal + $1
        where epoch = $2 and next_ordinal = $3 returning next_ordinal - $1 as first
      ), given as materialized (
        select turn.first + g.at as ordinal, k.source_id, g.container_key, g.lines, g.bytes, g.begins_at, g.ends_at, g.mask,
          g.times, g.kinds, g.text
        from turn, unnest(
          cast($6 as integer[]), cast($7 as integer[]), cast($8 as integer[]), cast($9 as integer[]), cast($10 as timestamptz[]),
          cast($11 as timestamptz[]), cast($12 as smallint[]), cast($13 as text[]), cast($14 as text[]), cast($15 as text[])
        ) as g (container_key, at, lines, bytes, begins_at, ends_at, mask, times, kinds, text)
        join $schema.container k on k.key = g.container_key
      ), written as (
        insert into $schema.chunk (ordinal, source_id, container_key, lines, bytes, begins_at, ends_at, mask, times, kinds, text)
        select ordinal, source_id, container_key, lines, bytes, begins_at, ends_at, mask, times, kinds, text from given
      ), moved as (
        update $schema.container k set place = p.place, lines = k.lines + g.lines,
          first_at = least(k.first_at, g.begins_at), last_at = greatest(k.last_at, g.ends_at)
        from unnest(cast($4 as integer[]), cast($5 as text[])) as p (key, place)
        join (
          select container_key, sum(lines) as lines, min(begins_at) as begins_at, max(ends_at) as ends_at from given group by 1
        ) g on g.container_key = p.key
        where k.key = p.key
      ), grown as (
        update $schema.source s set bytes = s.bytes + g.bytes
        from (select source_id, sum(bytes) as bytes from given group by 1) g
        where s.id = g.source_id returning s.id, s.bytes
      )
      select first, array(select distinct container_key from given) as keys, coalesce((select json_agg(json_build_object('id', id, 'bytes', bytes)) from grown), '[]') as sources from turn`
    )
  }

  /** From now on no other collector writes. */
  async begin(): Promise<Turn> {
    const [row] = await this.#db.sql<{ epoch: number; next_ordinal: number }>(
      'update $schema.collector set epoch = epoch + 1 returning epoch, next_ordinal'
    )
    if (row === undefined) throw new Error('the row of the collector is missing')
    return { epoch: row.epoch, nextOrdinal: row.next_ordinal }
  }

  /** Undefined when another one has begun. */
  async turn(epoch: number): Promise<Turn | undefined> {
    const [row] = await this.#db.sql<{ next_ordinal: number }>(
      'select next_ordinal from $schema.collector where epoch = ?',
      [epoch]
    )
    return row === undefined ? undefined : { epoch, nextOrdinal: row.next_ordinal }
  }

  /**
   * Makes known what was not, in the order given, and tells what is known of each. What belongs to an application that is not there
   * any more, or is being deleted and has nothing kept, is left out.
   */
  async register(seen: readonly SeenContainer[], at: Date): Promise<KnownContainer[]> {
    const given = {
      containers: seen.map(({ containerId }) => containerId),
      deployments: seen.map(({ deploymentId }) => deploymentId ?? null),
      sources: seen.map(({ sourceId }) => sourceId),
      types: seen.map(({ sourceType }) => sourceType),
      at
    }
    return await this.#db.transaction(async tx => {
      // Whoever writes or removes lines changes the same rows, in an order of its own.
      await this.#db.sql('select from $schema.collector for update', [], tx)
      return await this.#register(given, tx)
    })
  }

  async #register(given: Record<string, unknown>, tx: Tx): Promise<KnownContainer[]> {
    await this.#db.sql(
      `
      insert into $schema.source (id, type, application_id)
      select distinct on (s.id) s.id, s.type, a.id from unnest(cast(:sources as uuid[]), cast(:types as text[])) as s (id, type)
      left join ${applicationTable.name} a on a.id = s.id and s.type = 'application' and a.deleting_at is null
      where s.type <> 'application' or a.id is not null on conflict (id) do nothing`,
      given,
      tx
    )
    const rows = await this.#db.sql<{
      readonly key: number
      readonly container_id: string
      readonly deployment_id: string | null
      readonly source_id: string
      readonly type: string
      readonly place: string | null
      readonly ended_run: string | null
    }>(
      `
      with added as (
        insert into $schema.container (container_id, deployment_id, source_id, seen_at)
        select c.container_id, c.deployment_id, c.source_id, :at
        from unnest(cast(:containers as text[]), cast(:deployments as uuid[]), cast(:sources as uuid[]))
          with ordinality as c (container_id, deployment_id, source_id, n)
        join $schema.source s on s.id = c.source_id order by c.n
        on conflict (container_id) do update set seen_at = excluded.seen_at
        returning key, container_id, deployment_id, source_id, place, ended_run
      )
      select added.*, s.type from added join $schema.source s on s.id = added.source_id`,
      given,
      tx
    )
    return rows.map(row => ({
      key: row.key,
      containerId: row.container_id,
      deploymentId: row.deployment_id ?? undefined,
      sourceId: row.source_id,
      sourceType: row.type,
      place: row.place ?? undefined,
      endedRun: row.ended_run ?? undefined
    }))
  }

  /**
   * Keeps these lines, in this order: the ordinal of the first of them, and how much is kept of each source now. Undefined when nothing
   * was kept because it is another one's turn, or because it had been done already. What is of containers that are not known any more is
   * left out.
   */
  async write({ epoch, nextOrdinal }: Turn, kept: readonly KeptChunks[]): Promise<Written | undefined> {
    const chunks = kept.flatMap(({ key, chunks: own }) => own.map(chunk => ({ ...chunk, key })))
    let lines = 0
    const offsets = chunks.map(chunk => {
      const offset = lines
      lines += chunk.lines
      return offset
    })
    const [written] = await this.#write([
      lines,
      epoch,
      nextOrdinal,
      kept.map(({ key }) => key),
      kept.map(({ place }) => place),
      chunks.map(({ key }) => key),
      offsets,
      chunks.map(chunk => chunk.lines),
      chunks.map(({ bytes }) => bytes),
      chunks.map(({ beginsAt }) => new Date(beginsAt)),
      chunks.map(({ endsAt }) => new Date(endsAt)),
      chunks.map(({ mask }) => mask),
      chunks.map(({ times }) => times),
      chunks.map(({ kinds }) => kinds),
      chunks.map(({ text }) => text)
    ])
    return written
  }

  /** The output of this run of a container, by its start, is kept to its end. */
  async noteEnd(key: number, run: string): Promise<void> {
    await this.#db.sql('update $schema.container set ended_run = ? where key = ?', [run, key])
  }
}
