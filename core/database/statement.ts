import pg, { type QueryConfig, type QueryResult } from 'pg'

/** A query that pg sends as it is. A plain object it would copy first, which costs as much as sending it. */
export class Statement<Row extends object> extends pg.Query<Row> {
  readonly name: string | undefined

  constructor ({ name, text, values = [] }: QueryConfig, callback: (error: Error | null | undefined, result: QueryResult<Row>) => void) {
    super(text, values, callback)
    this.name = name
  }
}
