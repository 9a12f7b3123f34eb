import pg, { type QueryConfig, type QueryResult, type QueryResultRow } from 'pg'

/** What an answer's rows look like, as pg keeps it. */
interface Shape { readonly fields: pg.FieldDef[], readonly _parsers: unknown, readonly _prebuiltEmptyResultObject: unknown }
/** pg's connection, and what it is asked to remember: the shapes of its named statements, and itself without `describe`. */
interface Wire { shapes?: Map<string, Shape>, undescribed?: Wire }

declare module 'pg' {
  interface Query<R extends QueryResultRow, I extends any[]> {
    _result: Shape & { readonly of?: [R, I] }
    _accumulateRows: boolean
    prepare (wire: Wire): void
    handleRowDescription (message: object): void
  }
}

/**
 * A query that pg sends as it is; a plain object it would copy first, which costs as much as sending it.
 * The rows of a named one are described once on a connection: PostgreSQL refuses a plan whose columns have changed.
 */
export class Statement<Row extends object> extends pg.Query<Row> {
  readonly name: string | undefined
  wire: Wire | undefined

  constructor ({ name, text, values = [] }: QueryConfig, callback: (error: Error | null | undefined, result: QueryResult<Row>) => void) {
    super(text, values, callback)
    this.name = name
  }

  override prepare (wire: Wire): void {
    this.wire = wire
    const shape = this.name === undefined ? undefined : wire.shapes?.get(this.name)
    if (shape === undefined) { super.prepare(wire); return }
    Object.assign(this._result, shape)
    this._accumulateRows = true
    super.prepare(wire.undescribed ??= Object.create(wire, { describe: { value: () => {} } }) as Wire)
  }

  override handleRowDescription (message: object): void {
    super.handleRowDescription(message)
    const { fields, _parsers, _prebuiltEmptyResultObject } = this._result
    if (this.name !== undefined && this.wire !== undefined) (this.wire.shapes ??= new Map()).set(this.name, { fields, _parsers, _prebuiltEmptyResultObject })
  }
}
