import pg, { type QueryConfig, type QueryResult, type QueryResultRow } from 'pg'
import { objectMaker } from '../schemas/declared.js'

/** What an answer's rows look like, as pg keeps it, and how they are read. */
interface Shape {
  fields: pg.FieldDef[]
  _parsers: readonly unknown[]
  parseRow: ReturnType<typeof objectMaker>
}
/** pg's connection, and what it is asked to remember: the shapes of its named statements, and itself for those. */
interface Wire {
  shapes?: Map<string, Shape>
  known?: KnownWire
  _send(message: Buffer): unknown
}
/** A connection on which the shape of what is asked is known: nothing is described, and messages wait to be sent as one. */
interface KnownWire extends Wire {
  messages: Buffer[]
}

declare module 'pg' {
  // biome-ignore lint/suspicious/noExplicitAny: merges with an interface whose parameter reads so
  interface Query<R extends QueryResultRow, I extends any[]> {
    _result: Shape & { readonly of?: [R, I] }
    _accumulateRows: boolean
    prepare(wire: Wire): void
    handleRowDescription(message: object): void
  }
}

/**
 * A query that pg sends as it is; a plain object it would copy first, which costs as much as sending it.
 * The rows of a named one are described once on a connection: PostgreSQL refuses a plan whose columns have changed.
 */
export class Statement<Row extends object> extends pg.Query<Row> {
  readonly name: string | undefined
  wire: Wire | undefined

  constructor(
    { name, text, values = [] }: QueryConfig,
    callback: (error: Error | null | undefined, result: QueryResult<Row>) => void
  ) {
    super(text, values, callback)
    this.name = name
  }

  override prepare(wire: Wire): void {
    this.wire = wire
    const shape = this.name === undefined ? undefined : wire.shapes?.get(this.name)
    if (shape === undefined) {
      super.prepare(wire)
      return
    }
    const result = this._result
    result.fields = shape.fields
    result._parsers = shape._parsers
    result.parseRow = shape.parseRow
    this._accumulateRows = true
    wire.known ??= knownWire(wire)
    const { known } = wire
    try {
      super.prepare(known)
    } finally {
      wire._send(Buffer.concat(known.messages))
      known.messages = []
    }
  }

  override handleRowDescription(message: object): void {
    super.handleRowDescription(message)
    if (this.name === undefined || this.wire === undefined) return
    const { fields, _parsers } = this._result
    const shape = { fields, _parsers, parseRow: rowReader(fields, _parsers) }
    Object.assign(this._result, shape)
    this.wire.shapes ??= new Map()
    this.wire.shapes.set(this.name, shape)
  }
}

/** Each write costs as much as all that is in these messages: three of them took 3 % of what a request with one query costs. */
const knownWire = (wire: Wire): KnownWire =>
  Object.create(wire, {
    describe: { value: () => {} },
    messages: { value: [], writable: true },
    _send: {
      value(this: KnownWire, message: Buffer) {
        this.messages.push(message)
      }
    }
  }) as KnownWire

/** By the columns, of which there are as many kinds as statements: all connections share what is made for the first. */
const rowReaders = new Map<string, Shape['parseRow']>()

function rowReader(fields: readonly pg.FieldDef[], parsers: readonly unknown[]): Shape['parseRow'] {
  const key = JSON.stringify(fields.map(({ name, dataTypeID }) => [name, dataTypeID]))
  const reader =
    rowReaders.get(key) ??
    objectMaker(
      fields.map(({ name }) => name),
      fields.map((_, at) => `v[${at}] === null ? null : c${at}(v[${at}])`),
      parsers
    )
  rowReaders.set(key, reader)
  return reader
}
