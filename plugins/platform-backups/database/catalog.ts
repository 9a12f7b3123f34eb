/*
 * What a database consists of beside its rows, as the manifest of an archive holds it. Tables are written down column by
 * column instead of as a text, since majors of PostgreSQL differ in what they take; everything else is in the words of
 * the server's own functions (`pg_get_functiondef`, …), which all of them understand.
 */

export interface Column {
  readonly name: string
  /** With its modifiers: `character varying(20)`, `kernel.state[]`. */
  readonly type: string
  /** Where it is not that of the type; quoted. */
  readonly collation: string | null
  readonly notNull: boolean
  /** An expression: the default, or what a generated column is computed by. */
  readonly expression: string | null
  /** `s` stored, `v` virtual, empty for one that is not generated. */
  readonly generated: '' | 's' | 'v'
  /** `a` always, `d` by default, empty for none. */
  readonly identity: '' | 'a' | 'd'
  /** Where it is not that of the type: `plain`, `external`, `extended`, `main`. */
  readonly storage: string | null
}

export interface Table {
  readonly schema: string
  readonly name: string
  /** In the order of the table; those of a parent by inheritance are left out. */
  readonly columns: readonly Column[]
  /** All columns that hold rows, inherited ones too: those that are copied. */
  readonly copied: readonly string[]
  readonly unlogged: boolean
  /** `fillfactor=70`. */
  readonly options: readonly string[]
  /** `RANGE (at)` of a table that is split into partitions: it has no rows of its own. */
  readonly partitionBy: string | null
  /** `FOR VALUES FROM … TO …` of one that is a partition. */
  readonly partitionOf: string | null
  /** What it inherits from, or is a partition of; quoted and with schema. */
  readonly parents: readonly string[]
  readonly rowSecurity: boolean
  readonly forcedRowSecurity: boolean
}

export interface Sequence {
  readonly schema: string
  readonly name: string
  readonly type: string
  readonly start: string
  readonly increment: string
  readonly min: string
  readonly max: string
  readonly cache: string
  readonly cycle: boolean
  /** The column that it belongs to, and that it goes with; null for one that stands alone. */
  readonly owner: { readonly schema: string; readonly table: string; readonly column: string } | null
  /** It is how an identity column counts. */
  readonly ofIdentity: boolean
  /** The last number that it gave, and whether it has given that. */
  readonly last: string
  readonly called: boolean
}

/** A statement that makes something, and what to call it in a message. */
export interface Definition {
  readonly what: string
  readonly sql: string
}

export interface Catalog {
  /** Names as they are, not quoted. */
  readonly schemas: readonly string[]
  readonly extensions: ReadonlyArray<{ readonly name: string; readonly schema: string }>
  /** Types, functions and views: in any order, as each may need another one. */
  readonly definitions: readonly Definition[]
  readonly sequences: readonly Sequence[]
  readonly tables: readonly Table[]
  /** After the rows: keys and checks, then indexes, then foreign keys, then what acts on changes. */
  readonly constraints: readonly Definition[]
  readonly indexes: readonly Definition[]
  readonly foreignKeys: readonly Definition[]
  readonly rest: readonly Definition[]
  /** Materialized views, to be computed anew; quoted. */
  readonly refresh: readonly string[]
}

/** As SQL takes it, whatever the name is. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
export const qualified = ({ schema, name }: { readonly schema: string; readonly name: string }): string =>
  `${quoted(schema)}.${quoted(name)}`
/** As a text in SQL, with `standard_conforming_strings`. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`
