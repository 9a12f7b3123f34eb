import type { Tx } from 'busbar/sdk'
import { errorCode } from './problems.js'
import type { Statements } from './statements.js'

export interface TableSize {
  readonly name: string
  readonly rows: number
  /** Its rows are those of its partitions. */
  readonly isPartitioned: boolean
}

/** Objects of another owner depend on the schema's; `detail` is PostgreSQL's list of them. */
export class StillNeededError extends Error {
  constructor(
    readonly detail: string,
    options: ErrorOptions
  ) {
    super(`others depend on it: ${detail}`, options)
  }
}

const stillNeeded = '2BP01'
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

export async function schemaExists(database: Statements, schema: string, tx?: Tx): Promise<boolean> {
  return (await database.query('select from pg_namespace where nspname = $1', [schema], tx)).length > 0
}

/** A table for `from`, without those that inherit from it: they are tables themselves. */
export const rowsFrom = (schema: string, { name, isPartitioned }: Omit<TableSize, 'rows'>): string =>
  `${isPartitioned ? '' : 'only '}${quoted(schema)}.${quoted(name)}`

/** Every table of the schema but partitions of another one of it, with the number of its rows, in the order of the alphabet. */
export async function tablesOf(database: Statements, schema: string, tx?: Tx): Promise<TableSize[]> {
  const found = await database.query<{ name: string; isPartitioned: boolean }>(
    `select relname as name, relkind = 'p' as "isPartitioned" from pg_class c
    where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind in ('r', 'p')
      and not (relispartition and exists (select from pg_inherits i join pg_class p on p.oid = i.inhparent
        where i.inhrelid = c.oid and p.relnamespace = c.relnamespace))
    order by 1`,
    [schema],
    tx
  )
  const sizes: TableSize[] = []
  for (const table of found) {
    const [size] = await database.query<{ rows: number }>(
      `select count(*) as rows from ${rowsFrom(schema, table)}`,
      undefined,
      tx
    )
    sizes.push({ ...table, rows: size?.rows ?? 0 })
  }
  return sizes
}

/** What PostgreSQL calls an object, and how `drop` calls it where that is another word. */
const dropWords: Readonly<Record<string, string>> = {
  'composite type': 'type',
  'statistics object': 'statistics'
}

/** What is in the schema by itself: what an extension or another object brings along goes with that. */
const objectsOf = `
  select type, identity from (
    select distinct classid, objid from pg_depend d
    where refclassid = 'pg_namespace'::regclass and refobjid = $1::regnamespace and deptype = 'n'
      and not exists (select from pg_depend o where o.classid = d.classid and o.objid = d.objid and o.deptype in ('e', 'i', 'P')
          and (o.refclassid, o.refobjid) is distinct from (o.classid, o.objid))
  ) as found, lateral pg_identify_object(classid, objid, 0)`

interface SchemaObject {
  readonly type: string
  readonly identity: string
}

/** Drops what nothing depends on, until nothing is left; when nothing more goes, it throws what keeps the rest. */
async function dropObjects(database: Statements, schema: string, tx: Tx): Promise<void> {
  for (let before = Infinity; ; ) {
    const left = await database.query<SchemaObject>(objectsOf, [quoted(schema)], tx)
    if (left.length === 0) return
    const kept: unknown[] = []
    for (const { type, identity } of left) {
      await database.query('savepoint dropping', undefined, tx)
      try {
        await database.query(`drop ${dropWords[type] ?? type} if exists ${identity} restrict`, undefined, tx)
        await database.query('release savepoint dropping', undefined, tx)
      } catch (error) {
        if (errorCode(error) !== stillNeeded) throw error
        kept.push(error)
        await database.query('rollback to savepoint dropping', undefined, tx)
      }
    }
    if (left.length >= before) throw stillNeededBy(kept, schema)
    before = left.length
  }
}

/** Of everything that keeps something: what lies elsewhere, as far as there is such. */
function stillNeededBy(errors: readonly unknown[], schema: string): StillNeededError {
  const lines = errors.flatMap(error => String((error as { detail?: unknown }).detail ?? '').split('\n'))
  const ofOthers = lines.filter(line => !line.split(' depends on ')[0]?.includes(`${schema}.`))
  return new StillNeededError([...new Set(ofOthers.length > 0 ? ofOthers : lines)].join('; '), {
    cause: errors[0]
  })
}

/**
 * Removes a schema with all that is in it, and nothing else: every command is RESTRICT, so PostgreSQL itself
 * refuses where another schema's key or view depends on it. CASCADE would drop those silently.
 */
export async function removeSchema(database: Statements, schema: string, tx: Tx): Promise<void> {
  try {
    await dropObjects(database, schema, tx)
    await database.query(`drop schema ${quoted(schema)} restrict`, undefined, tx)
  } catch (error) {
    throw errorCode(error) === stillNeeded ? stillNeededBy([error], schema) : error
  }
}
