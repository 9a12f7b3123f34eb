import { type Column, literal, qualified, quoted, type Sequence, type Table } from './catalog.js'

/** Virtual columns came with it. */
const firstWithVirtual = 18

/** The statements that make a table for its rows: keys, checks, indexes and triggers come after them. */
export function createTable(
  table: Table,
  identities: ReadonlyMap<string, Sequence>,
  major: number
): string[] {
  const name = qualified(table)
  const kind = table.unlogged ? 'unlogged table' : 'table'
  const partitioned = table.partitionBy === null ? '' : ` partition by ${table.partitionBy}`
  const options = table.options.length === 0 ? '' : ` with (${table.options.join(', ')})`
  const columns = table.columns.map(column => columnSql(column, identities.get(column.name), major))
  const made =
    table.partitionOf === null
      ? `create ${kind} ${name} (${columns.join(', ')})${inherits(table)}${partitioned}${options}`
      : `create ${kind} ${name} partition of ${table.parents.join(', ')} ${table.partitionOf}${partitioned}${options}`
  return [
    made,
    ...table.columns.flatMap(({ name: column, storage }) =>
      storage === null || table.partitionOf !== null
        ? []
        : [`alter table ${name} alter column ${quoted(column)} set storage ${storage}`]
    ),
    ...(table.rowSecurity ? [`alter table ${name} enable row level security`] : []),
    ...(table.forcedRowSecurity ? [`alter table ${name} force row level security`] : [])
  ]
}

const inherits = ({ parents }: Table): string =>
  parents.length === 0 ? '' : ` inherits (${parents.join(', ')})`

function columnSql(column: Column, sequence: Sequence | undefined, major: number): string {
  const collation = column.collation === null ? '' : ` collate ${column.collation}`
  const notNull = column.notNull ? ' not null' : ''
  return `${quoted(column.name)} ${column.type}${collation}${valueSql(column, sequence, major)}${notNull}`
}

function valueSql(column: Column, sequence: Sequence | undefined, major: number): string {
  if (column.generated !== '') {
    const kind = column.generated === 'v' && major >= firstWithVirtual ? 'virtual' : 'stored'
    return ` generated always as (${column.expression ?? 'null'}) ${kind}`
  }
  if (column.identity !== '') {
    const when = column.identity === 'a' ? 'always' : 'by default'
    const counted =
      sequence === undefined ? '' : ` (sequence name ${qualified(sequence)} ${countSql(sequence)})`
    return ` generated ${when} as identity${counted}`
  }
  return column.expression === null ? '' : ` default ${column.expression}`
}

const countSql = (sequence: Sequence): string =>
  `start with ${sequence.start} increment by ${sequence.increment} minvalue ${sequence.min} maxvalue ${sequence.max} cache ${sequence.cache} ${
    sequence.cycle ? 'cycle' : 'no cycle'
  }`

export const createSequence = (sequence: Sequence): string =>
  `create sequence ${qualified(sequence)} as ${sequence.type} ${countSql(sequence)}`

/** A sequence that stands alone goes with a column once that is there. */
export const ownSequence = (sequence: Sequence): string | null =>
  sequence.owner === null || sequence.ofIdentity
    ? null
    : `alter sequence ${qualified(sequence)} owned by ${qualified({ schema: sequence.owner.schema, name: sequence.owner.table })}.${quoted(sequence.owner.column)}`

export const setSequence = (sequence: Sequence): string =>
  `select setval(${literal(qualified(sequence))}::regclass, ${sequence.last}, ${String(sequence.called)})`

/** What is copied of a table, out of it and into it; null of one that has no rows of its own, or no columns. */
export function copiedPart(table: Table): string | null {
  if (table.partitionBy !== null || table.copied.length === 0) return null
  return `${qualified(table)} (${table.copied.map(quoted).join(', ')})`
}
