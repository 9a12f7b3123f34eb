import type { Database, Tx } from 'busbar/sdk'

/** So many chunks are removed in one transaction: nothing is written meanwhile. */
const atOnce = 500

/** Takes lines away, the oldest first. */
export class RemovalStore {
  constructor(private readonly db: Database) {}

  /** Some of what was written before then; whether there may be more. */
  async removeOlder(before: Date): Promise<boolean> {
    return await this.#remove(
      'select ordinal from $schema.chunk where ends_at < :before order by ends_at limit :atOnce',
      { before }
    )
  }

  /** Some of the oldest lines of a source that has more than so many bytes; whether it may still have. */
  async removeBeyond(sourceId: string, bytes: number): Promise<boolean> {
    return await this.#remove(
      `
      select ordinal from (
        select c.ordinal, s.bytes - sum(c.bytes) over (order by c.ordinal) + c.bytes as held
        from (select ordinal, bytes from $schema.chunk where source_id = :sourceId order by ordinal limit :atOnce) c,
          $schema.source s where s.id = :sourceId
      ) as oldest where held > :bytes`,
      { sourceId, bytes }
    )
  }

  /** Some of all lines of a source; whether there may be more. */
  async removeSome(sourceId: string): Promise<boolean> {
    return await this.#remove(
      'select ordinal from $schema.chunk where source_id = :sourceId order by ordinal limit :atOnce',
      { sourceId }
    )
  }

  /** A source with its containers; false when lines of it were kept meanwhile. */
  async removeSource(sourceId: string): Promise<boolean> {
    return await this.#inTurn(async tx => {
      const kept = await this.db.sql('select from $schema.chunk where source_id = ? limit 1', [sourceId], tx)
      if (kept.length > 0) return false
      await this.db.sql('delete from $schema.container where source_id = ?', [sourceId], tx)
      await this.db.sql('delete from $schema.source where id = ?', [sourceId], tx)
      return true
    })
  }

  /** Containers of which no line is kept, but for those that the engine still has. */
  async forgetContainers(existing: readonly string[]): Promise<void> {
    await this.#inTurn(async tx => {
      await this.db.sql(
        `
        delete from $schema.container k where lines <= 0 and container_id <> all(:existing)
          and not exists (select from $schema.chunk where container_key = k.key)`,
        { existing },
        tx
      )
    })
  }

  async #remove(chosen: string, bindings: Record<string, unknown>): Promise<boolean> {
    const [row] = await this.#inTurn(
      async tx =>
        await this.db.sql<{ removed: number }>(
          `
          with gone as (
            delete from $schema.chunk where ordinal in (${chosen}) returning ordinal, source_id, container_key, lines, bytes
          ), fewer as (
            update $schema.container k set lines = k.lines - g.lines,
              first_at = (
                select c.begins_at from $schema.chunk c where c.container_key = k.key and c.ordinal > g.latest order by c.ordinal limit 1
              ),
              last_at = case when k.lines > g.lines then k.last_at end
            from (select container_key, sum(lines) as lines, max(ordinal) as latest from gone group by 1) g
            where k.key = g.container_key
          ), smaller as (
            update $schema.source s set bytes = s.bytes - g.bytes
            from (select source_id, sum(bytes) as bytes from gone group by 1) g where s.id = g.source_id
          )
          select count(*) as removed from gone`,
          { atOnce, ...bindings },
          tx
        )
    )
    return row?.removed === atOnce
  }

  /** Who keeps lines changes the same rows, in an order of its own. */
  async #inTurn<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return await this.db.transaction(async tx => {
      await this.db.sql('select from $schema.collector for update', [], tx)
      return await work(tx)
    })
  }
}
