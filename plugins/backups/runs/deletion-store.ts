import type { Database, Tx } from 'busbar/sdk'
import type { SourceKind } from '../api.js'
import { thisMachine } from './moved-bucket.js'

/** Where the file is, of a `backup b`: what is away is not asked again for each of its files. */
const placeOf = `coalesce(b.destination_id::text, case when b.in_platform_store then 'platform' else '${thisMachine}' end)`
const isRestored = "exists (select from $schema.restore r where r.backup_id = b.id and r.status = 'running')"

/** A drill that it fails itself shows that it is of no use either. */
const staysAlone = "(stays and proof = 'proven')"

/** SQL on backups that go. */
export class DeletionStore {
  constructor(private readonly db: Database) {}

  /** What it is used for now, which keeps it from being deleted; with `tx`, until that ends nothing else begins with it. */
  async use(id: string, tx?: Tx): Promise<'made' | 'restored' | 'proven' | null> {
    // A statement of its own: what waits for who begins a restore would look for it in what was there before.
    if (tx !== undefined)
      await this.db.sql('select from $schema.backup where id = :id for update', { id }, tx)
    const [row] = await this.db.sql<{ status: string; proof: string; restored: boolean }>(
      `select status, proof, ${isRestored} as restored from $schema.backup b where id = :id`,
      { id },
      tx
    )
    if (row === undefined) return null
    if (row.status === 'running') return 'made'
    if (row.restored) return 'restored'
    return row.proof === 'running' ? 'proven' : null
  }

  /** What it is a backup of. */
  async mark(id: string, at: Date, tx: Tx): Promise<string | undefined> {
    return await this.#mark(id, at, 'true', tx)
  }

  /** The same, unless it stays. */
  async markBeyond(id: string, at: Date, tx: Tx): Promise<string | undefined> {
    return await this.#mark(id, at, `not ${staysAlone}`, tx)
  }

  async #mark(id: string, at: Date, where: string, tx: Tx): Promise<string | undefined> {
    const [row] = await this.db.sql<{ source_id: string }>(
      `update $schema.backup set deleting_at = :at where id = :id and deleting_at is null and ${where} returning source_id`,
      { id, at },
      tx
    )
    return row?.source_id
  }

  /**
   * Those of a schedule, or those that were made by hand of one source, beyond so many of the newest that are good; ids. What a
   * schedule has made that is gone since is neither: it is at a destination. The last one that is known to work stays, where a drill of
   * a newer one has failed.
   */
  async beyond(
    of: { readonly sourceId: string; readonly configId: string | null },
    keep: number
  ): Promise<string[]> {
    const rows = await this.db.sql<{ id: string }>(
      `select id from (
        select id, stays, proof from $schema.backup where source_id = :sourceId and config_id is not distinct from cast(:configId as uuid)
        and (config_id is not null or destination_id is null) and status = 'succeeded' and deleting_at is null
        order by started_at desc, id desc offset :keep
      ) old where not ${staysAlone}`,
      { ...of, keep }
    )
    return rows.map(({ id }) => id)
  }

  /** Rows of what has failed and left nothing are kept for a while. */
  async forgetFailed(sourceId: string, keep: number, tx?: Tx): Promise<void> {
    await this.db.sql(
      `delete from $schema.backup where id in (
        select id from $schema.backup where source_id = :sourceId and status = 'failed' and not has_file
        order by started_at desc, id desc offset :keep)`,
      { sourceId, keep },
      tx
    )
  }

  /** Marks all of a source. */
  async markAll(sourceId: string, at: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.backup set deleting_at = :at where source_id = :sourceId and deleting_at is null',
      { sourceId, at },
      tx
    )
  }

  /** Marks what is being made of a source: nobody waits for it any more. */
  async markRunning(sourceId: string, at: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      `update $schema.backup set deleting_at = :at where source_id = :sourceId and status = 'running' and deleting_at is null`,
      { sourceId, at },
      tx
    )
  }

  /** Marks those whose source was deleted before. What is used stays until the next time. */
  async markOrphaned(before: Date, at: Date, tx: Tx): Promise<void> {
    // Locked first, by a statement of its own, as in `use`.
    const found = await this.db.sql<{ id: string }>(
      `select b.id from $schema.backup b join $schema.source s on s.id = b.source_id
      where s.deleted_at < :before and b.deleting_at is null order by b.id for update of b`,
      { before },
      tx
    )
    await this.db.sql(
      `update $schema.backup b set deleting_at = :at where id = any(cast(:ids as uuid[])) and deleting_at is null
        and status <> 'running' and proof <> 'running' and not ${isRestored}`,
      { ids: found.map(({ id }) => id), at },
      tx
    )
  }

  /**
   * What is to be erased, and what a run has left that failed, behind that id and up to the last one; what is used, or is at one of these places, is
   * passed over.
   */
  async due({
    after,
    last,
    away,
    atMost
  }: {
    readonly after: string
    readonly last: string
    readonly away: readonly string[]
    readonly atMost: number
  }): Promise<Array<{ readonly id: string; readonly place: string }>> {
    return await this.db.sql(
      `select id, ${placeOf} as place from $schema.backup b
      where id > :after and id <= :last and status <> 'running' and (deleting_at is not null or status = 'failed' and has_file)
        and proof <> 'running' and not ${isRestored} and ${placeOf} <> all(cast(:away as text[]))
      order by id limit :atMost`,
      { after, last, away: [...away], atMost }
    )
  }

  async isMarked(id: string): Promise<boolean> {
    const rows = await this.db.sql('select from $schema.backup where id = :id and deleting_at is not null', {
      id
    })
    return rows.length > 0
  }

  async remove(id: string): Promise<void> {
    await this.db.sql('delete from $schema.backup where id = :id', { id })
  }

  /** What goes, or is left, when it is removed. */
  async impact(
    kind: SourceKind,
    resourceId: string
  ): Promise<{ readonly backupCount: number; readonly destinations: readonly string[] }> {
    const rows = await this.db.sql<{ name: string; total: number }>(
      `select coalesce(d.name, case when b.in_platform_store then 'platform' else 'local' end) as name, count(*)::int as total
      from $schema.backup b join $schema.source s on s.id = b.source_id left join $schema.destination d on d.id = b.destination_id
      where s.kind = :kind and s.resource_id = :resourceId and b.status = 'succeeded' and b.deleting_at is null
      group by 1 order by 1`,
      { kind, resourceId }
    )
    return {
      backupCount: rows.reduce((sum, { total }) => sum + total, 0),
      destinations: rows.map(({ name }) => name)
    }
  }

  async ofProject(projectId: string): Promise<Array<{ readonly id: string; readonly place: string }>> {
    return await this.db.sql(
      `select b.id, ${placeOf} as place from $schema.backup b join $schema.source s on s.id = b.source_id
      where s.project_id = :projectId and b.has_file order by b.id`,
      { projectId }
    )
  }

  /** All that is known of a project's backups, once their files are gone. */
  async removeProject(projectId: string, tx: Tx): Promise<void> {
    const sources = 'select id from $schema.source where project_id = :projectId'
    for (const table of ['restore', 'backup', 'config'])
      await this.db.sql(`delete from $schema.${table} where source_id in (${sources})`, { projectId }, tx)
    for (const table of ['source', 'destination'])
      await this.db.sql(`delete from $schema.${table} where project_id = :projectId`, { projectId }, tx)
  }
}
