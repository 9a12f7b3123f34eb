import type { ExtensionPoint } from './service.js'
import type { Tx } from './tx.js'

/**
 * What another plugin does when a resource is removed: it takes away what it keeps of it (rows, containers, files).
 *
 * It runs in a durable job, so it is idempotent and may run again. Throwing is the way to say "not yet": the row of the
 * resource stays, and all steps run again later. It has five minutes.
 */
export interface ResourceTeardown {
  /** `signal` aborts when the plugin stops, and when the time is up. */
  teardown(id: string, context: { readonly signal: AbortSignal }): Promise<void>
}

/**
 * A kind of thing that is kept for users and can be removed: a project, an application, a bucket. Declared once, in
 * `resources`; from it the kernel answers whose a resource is (for access rules) and what it is called (for the audit
 * log), and takes it apart when it is removed.
 *
 *     resources: resource => {
 *       resource({ kind: 'bucket', table: 'bucket', name: 'title', parents: { project: 'project_id' }, removal: { teardown: bucketTeardown } })
 *     }
 *
 * `Row` is a row of its table, as `select *` gives it.
 */
export interface ResourceSpec<Row extends object, Self> {
  /**
   * Lower-case words joined by `-` or `_`; one plugin declares it on an instance. Access rules name it (`of`, `chain`),
   * and a path parameter that holds such an id is called after it: `bucketId`.
   */
  readonly kind: string
  /** In the plugin's own schema, one row for each, with a primary key `id uuid`. */
  readonly table: string
  /**
   * In what it lies: by kind, the column with the id of it; null where a row is in none of that kind. It never
   * changes. One that is in no project, by itself or through these, has no project: access rules answer 404.
   */
  readonly parents?: Readonly<Record<string, string>>
  /** The column with what people call it. */
  readonly name?: string
  /** Left out where it has no removal of its own: its rows go with what it is in, by a teardown. */
  readonly removal?: ResourceRemoval<Row, Self>
}

/**
 * How one is removed. The table has a column `deleting_at timestamptz`, null while the resource is there for users.
 * `kernel.resources.remove` marks a row; a durable job does the rest, for as long as it takes: what is in the
 * resource goes before it, then the steps of other plugins, dependants first, then `run`, then the row.
 * What is in something that is removed is marked by the kernel.
 */
export interface ResourceRemoval<Row extends object, Self> {
  /** The plugin's own extension point, to which others contribute what they do. Foreign keys of theirs are `on delete restrict`. */
  readonly teardown?: ExtensionPoint<ResourceTeardown>
  /**
   * A column by whose value removals take turns: those of one value run one after another. Absent: by the value that
   * the first of its parents has, or by itself where there is none.
   */
  readonly turnsBy?: string
  /** The plugin's own last step before the row goes. Idempotent; throwing says "not yet". It has five minutes. */
  readonly run?: (row: Row, context: { readonly signal: AbortSignal }, self: Self) => Promise<void>
  /** In the transaction that has deleted the row: the place to emit an event. */
  readonly deleted?: (row: Row, tx: Tx, self: Self) => Promise<void>
}

export type ResourceDeclarer<Self> = <Row extends object = { readonly id: string }>(
  spec: ResourceSpec<Row, Self>
) => void
