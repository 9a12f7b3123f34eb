import type { BulkConnection } from 'busbar/sdk'
import type { Catalog, Column, Definition, Sequence, Table } from './catalog.js'
import { literal, qualified } from './catalog.js'
import * as queries from './catalog-queries.js'

type TableRow = Omit<Table, 'columns' | 'copied'> & { readonly oid: string }
type ColumnRow = Column & { readonly table: string; readonly local: boolean }
type SequenceRow = Omit<Sequence, 'owner' | 'last' | 'called'> & {
  readonly ownerSchema: string | null
  readonly ownerTable: string | null
  readonly ownerColumn: string | null
}

/** What the schemas consist of, and what of it an archive does not keep, in words. */
export async function readCatalog(
  connection: Pick<BulkConnection, 'query'>,
  schemas: readonly string[]
): Promise<{ readonly catalog: Catalog; readonly leftOut: readonly string[] }> {
  const ask = async <Row extends object>(text: string): Promise<Row[]> =>
    await connection.query<Row>(text, text.includes('$1') ? [schemas] : undefined)
  const views = await ask<Definition & { refresh: string | null }>(queries.viewsText)
  const functions = await ask<Definition & { comment: string | null; signature: string }>(
    queries.functionsText
  )
  const constraints = await ask<Definition & { isForeign: boolean }>(queries.constraintsText)
  const triggers = await ask<Definition & { mode: string | null }>(queries.triggersText)
  const indexes = await ask<Definition & { isPartitioned: boolean; head: string }>(queries.indexesText)
  const catalog: Catalog = {
    schemas,
    extensions: await ask(queries.extensionsText),
    definitions: [
      ...(await ask<Definition>(queries.enumsText)),
      ...(await ask<Definition>(queries.domainsText)),
      ...(await ask<Definition>(queries.compositesText)),
      ...(await ask<Definition>(queries.rangesText)),
      ...functions.map(({ what, sql }) => ({ what, sql })),
      ...views.map(({ what, sql }) => ({ what, sql }))
    ],
    sequences: await readSequences(connection, await ask<SequenceRow>(queries.sequencesText)),
    tables: tablesOf(await ask<TableRow>(queries.tablesText), await ask<ColumnRow>(queries.columnsText)),
    constraints: constraints.filter(({ isForeign }) => !isForeign).map(definitionOf),
    indexes: indexes.map(({ what, sql, isPartitioned, head }) => ({
      what,
      sql: isPartitioned ? ofAllPartitions(sql, head) : sql
    })),
    foreignKeys: constraints.filter(({ isForeign }) => isForeign).map(definitionOf),
    rest: [
      ...(await ask<Definition>(queries.statisticsText)),
      ...triggers.flatMap(({ what, sql, mode }) => [
        { what, sql },
        ...(mode === null ? [] : [{ what, sql: mode }])
      ]),
      ...(await ask<Definition>(queries.rulesText)),
      ...(await ask<Definition>(queries.policiesText)),
      ...(await ask<Definition>(queries.commentsText)),
      ...functions.flatMap(({ what, comment, signature }) =>
        comment === null
          ? []
          : [{ what: `the comment on ${what}`, sql: `comment on ${signature} is ${literal(comment)}` }]
      )
    ],
    refresh: views.flatMap(({ refresh }) => refresh ?? [])
  }
  const leftOut = await ask<{ what: string }>(queries.leftOutText)
  return { catalog, leftOut: leftOut.map(({ what }) => what) }
}

const definitionOf = ({ what, sql }: Definition): Definition => ({ what, sql })

/** The server describes an index of a partitioned table as one without those of its partitions. */
function ofAllPartitions(sql: string, head: string): string {
  const only = `${head}ONLY `
  return sql.startsWith(only) ? head + sql.slice(only.length) : sql
}

function tablesOf(tables: readonly TableRow[], columns: readonly ColumnRow[]): Table[] {
  const byTable = new Map<string, ColumnRow[]>()
  for (const column of columns) {
    const known = byTable.get(column.table)
    if (known === undefined) byTable.set(column.table, [column])
    else known.push(column)
  }
  return tables.map(({ oid, ...table }) => {
    const all = byTable.get(oid) ?? []
    return {
      ...table,
      columns: all.filter(({ local }) => local).map(({ table: _table, local: _local, ...column }) => column),
      copied: all.filter(({ generated }) => generated === '').map(({ name }) => name)
    }
  })
}

/** A sequence has given its numbers before the rows that hold them were seen, so it may be asked after them. */
async function readSequences(
  connection: Pick<BulkConnection, 'query'>,
  rows: readonly SequenceRow[]
): Promise<Sequence[]> {
  if (rows.length === 0) return []
  const values = await connection.query<{ at: number; last: string; called: boolean }>(
    rows
      .map(
        (row, at) =>
          `select ${at} as at, last_value::text as last, is_called as called from ${qualified(row)}`
      )
      .join(' union all ')
  )
  const byPlace = new Map(values.map(value => [value.at, value]))
  return rows.map(({ ownerSchema, ownerTable, ownerColumn, ofIdentity, ...row }, at) => ({
    ...row,
    ofIdentity: ofIdentity === true,
    owner:
      ownerSchema === null || ownerTable === null || ownerColumn === null
        ? null
        : { schema: ownerSchema, table: ownerTable, column: ownerColumn },
    last: byPlace.get(at)?.last ?? row.start,
    called: byPlace.get(at)?.called ?? false
  }))
}
