import { applicationTable } from 'busbar/api/applications'
import type { Database } from 'busbar/sdk'
import type { FilePlace } from '../files/file-place.js'
import type { Trace } from './trace.js'

/** What came of a batch. */
export interface Written {
  /** The indices of those that were stored; others had been, or their application is gone. */
  readonly stored: readonly number[]
}

/** Of an access log, from where to where it was read. */
export interface PlaceChange {
  readonly path: string
  readonly from: FilePlace
  readonly to: FilePlace
}

type Columns = readonly [
  ids: readonly string[],
  applications: ReadonlyArray<string | null>,
  hostnames: readonly string[],
  methods: readonly string[],
  paths: readonly string[],
  statusCodes: readonly number[],
  latencies: readonly number[],
  requestSizes: ReadonlyArray<number | null>,
  responseSizes: ReadonlyArray<number | null>,
  clients: ReadonlyArray<string | null>,
  userAgents: ReadonlyArray<string | null>,
  times: readonly Date[]
]
type Move = readonly [
  path: string,
  fromInode: string,
  fromPlace: number,
  inode: string,
  place: number,
  isMidLine: boolean,
  headLength: number,
  headDigest: string,
  changedNs: string
]
interface WrittenRow {
  readonly hadTurn: boolean
  readonly stored: readonly number[]
}

const given = `given as materialized (
    select g.* from unnest(
      $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::integer[], $8::bigint[], $9::bigint[], $10::text[],
      $11::text[], $12::timestamptz[]
    ) with ordinality as g (
      id, application_id, hostname, method, path, status_code, latency_ms, request_size, response_size, client_ip, user_agent,
      recorded_at, at
    )
    left join ${applicationTable.name} a on a.id = g.application_id and a.deleting_at is null
    where g.application_id is null or a.id is not null
  )`
// The row of the progress keeps two batches from being written at once, so that positions become visible in their order.
const turn = (condition: string): string => `turn as (
    update $schema.progress set last_position = last_position + cardinality($1::uuid[]) ${condition}
    returning last_position - cardinality($1::uuid[]) as before
  )`
const written = `written as (
    insert into $schema.request (
      position, id, application_id, hostname, method, path, status_code, latency_ms, request_size, response_size, client_ip, user_agent,
      recorded_at
    )
    select turn.before + g.at, g.id, g.application_id, g.hostname, g.method, g.path, g.status_code, g.latency_ms, g.request_size,
      g.response_size, g.client_ip, g.user_agent, g.recorded_at
    from turn, given g order by g.at
    on conflict (id) do nothing returning position
  )
  select exists (select from turn) as "hadTurn",
    coalesce((select array_agg(cast(written.position - turn.before as integer)) from written, turn), '{}') as stored`

/** Writes requests, a batch at a time, each in one statement. A batch that is written twice is stored once. */
export class TraceStore {
  readonly #write
  readonly #writeRead

  constructor(db: Database) {
    this.#write = db.statement<WrittenRow, Columns>(
      'write-requests',
      `with ${given}, ${turn('')}, ${written}`
    )
    this.#writeRead = db.statement<WrittenRow, readonly [...Columns, ...Move]>(
      'write-read-requests',
      `with moved as (
        update $schema.access_log set inode = $16, place = $17, is_mid_line = $18, head_length = $19, head_digest = $20, changed_ns = $21
        where path = $13 and inode = $14 and place = $15 returning 1 as one
      ), ${given}, ${turn('where exists (select from moved)')}, ${written}`
    )
  }

  async write(traces: readonly Trace[]): Promise<Written> {
    const [row] = await this.#write(columnsOf(traces))
    return { stored: indicesOf(row) }
  }

  /** With how far the log was read, or not at all: undefined where another process has read on from there. */
  async writeRead(traces: readonly Trace[], { path, from, to }: PlaceChange): Promise<Written | undefined> {
    const [row] = await this.#writeRead([
      ...columnsOf(traces),
      path,
      from.inode,
      from.place,
      to.inode,
      to.place,
      to.isMidLine,
      to.headLength,
      to.headDigest,
      to.changedNs
    ])
    return row?.hadTurn === true ? { stored: indicesOf(row) } : undefined
  }
}

const indicesOf = (row: WrittenRow | undefined): number[] => (row?.stored ?? []).map(at => at - 1)

const columnsOf = (traces: readonly Trace[]): Columns => [
  traces.map(({ id }) => id),
  traces.map(one => one.application_id),
  traces.map(({ hostname }) => hostname),
  traces.map(({ method }) => method),
  traces.map(({ path }) => path),
  traces.map(one => one.status_code),
  traces.map(one => one.latency_ms),
  traces.map(one => one.request_size),
  traces.map(one => one.response_size),
  traces.map(one => one.client_ip),
  traces.map(one => one.user_agent),
  traces.map(one => one.recorded_at)
]
