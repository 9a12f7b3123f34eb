/**
 * One forward step of a plugin's own PostgreSQL schema.
 *
 * `sql` is one or more statements; every `$schema` in it stands for the plugin's schema. The kernel
 * remembers the checksum of the text: a migration that has run is never edited, a new one is added. A third-party
 * plugin needs the grant `database`, and 2 minutes at most for each statement. No `begin` or `commit`: each migration
 * is a transaction.
 *
 * `expand` (add a table, a nullable column, an index) runs before the plugin starts. `contract`
 * (drop, make not null) runs only when the previous release cannot be running any more.
 */
export interface Migration {
  /** `001-create-applications`: sorted by name, unique within the plugin. */
  readonly name: string
  readonly phase: 'expand' | 'contract'
  readonly sql: string
}
