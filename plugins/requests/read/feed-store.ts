import type { Database } from 'busbar/sdk'
import { type StoredTrace, traceColumns } from './history-store.js'

/** Where a reader is: behind the request with this position, of one application or of all. */
export interface FeedPlace {
  readonly applicationId: string | null
  readonly position: number
}

const qualified = traceColumns.replace(/\w+/g, name => `r.${name}`)
const ahead = (condition: string): string => `cross join lateral (
    select ${qualified} from $schema.request r where ${condition} r.position > w.position order by r.position limit $3
  ) found`

/** What comes behind places. */
export class FeedStore {
  readonly #last
  readonly #after

  constructor(db: Database) {
    this.#last = db.statement<{ last_position: number }, []>(
      'last-request',
      'select last_position from $schema.progress'
    )
    // Each kind of place has a query of its own, by an index of its own.
    this.#after = db.statement<
      StoredTrace & { readonly place: number },
      [ReadonlyArray<string | null>, readonly number[], number]
    >(
      'requests-after',
      `with w as (select * from unnest($1::uuid[], $2::bigint[]) with ordinality as w (application_id, position, place))
      select w.place, found.* from w ${ahead('r.application_id = w.application_id and')} where w.application_id is not null
      union all
      select w.place, found.* from w ${ahead('')} where w.application_id is null
      order by place, position`
    )
  }

  /** All up to it is committed. */
  async lastPosition(): Promise<number> {
    return (await this.#last([]))[0]?.last_position ?? 0
  }

  /** For each of the places, in their order, what comes behind it: `limit` at most. */
  async after(places: readonly FeedPlace[], limit: number): Promise<ReadonlyArray<readonly StoredTrace[]>> {
    const found: StoredTrace[][] = places.map(() => [])
    const rows = await this.#after([
      places.map(({ applicationId }) => applicationId),
      places.map(({ position }) => position),
      limit
    ])
    for (const { place, ...trace } of rows) found[place - 1]?.push(trace)
    return found
  }
}
