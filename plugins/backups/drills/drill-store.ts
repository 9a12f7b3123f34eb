import type { Database, Tx } from 'busbar/sdk'

interface Proof {
  readonly at: Date
  readonly ms: number
  readonly rows: number
  readonly detail: string
}

/** Whether `o` is kept or goes with `b`, as `DeletionStore.beyond` has it. */
const isBesides =
  'o.source_id = b.source_id and o.config_id is not distinct from b.config_id and (b.config_id is not null or b.destination_id is null and o.destination_id is null)'

/** SQL on what is known of the worth of backups. */
export class DrillStore {
  constructor(private readonly db: Database) {}

  /** The newest backup of a schedule that is good. */
  async newest(configId: string): Promise<{ readonly id: string; readonly proof: string } | undefined> {
    const [row] = await this.db.sql<{ id: string; proof: string }>(
      `select id, proof from $schema.backup where config_id = :configId and status = 'succeeded' and deleting_at is null
      order by started_at desc, id desc limit 1`,
      { configId }
    )
    return row
  }

  /** What it is a backup of; undefined where one is under way, or it cannot be. */
  async begin(id: string, at: Date, tx: Tx): Promise<string | undefined> {
    const [row] = await this.db.sql<{ source_id: string }>(
      `update $schema.backup set proof = 'running', proof_seen_at = :at, proof_error = null
      where id = :id and status = 'succeeded' and deleting_at is null and proof <> 'running' returning source_id`,
      { id, at },
      tx
    )
    return row?.source_id
  }

  async seen(id: string, at: Date): Promise<void> {
    await this.db.sql("update $schema.backup set proof_seen_at = :at where id = :id and proof = 'running'", {
      id,
      at
    })
  }

  /** Older ones of its schedule need not stay for its sake any more. */
  async proven(id: string, proof: Proof): Promise<void> {
    await this.db.sql(
      `with proven as (
        update $schema.backup set proof = 'proven', proof_at = :at, proof_ms = :ms, proof_rows = :rows, proof_detail = :detail, proof_error = null
        where id = :id returning *)
      update $schema.backup o set stays = false from proven b
      where o.stays and ${isBesides} and (o.started_at, o.id) < (b.started_at, b.id)`,
      { id, ...proof }
    )
  }

  /** The newest one that is known to work stays, where it is older. */
  async failed(
    id: string,
    failure: { readonly at: Date; readonly ms: number; readonly error: string },
    tx: Tx
  ): Promise<void> {
    await this.db.sql(
      `update $schema.backup set proof = 'failed', proof_at = :at, proof_ms = :ms, proof_rows = null, proof_detail = null, proof_error = :error
      where id = :id`,
      { id, ...failure },
      tx
    )
    await this.db.sql(
      `update $schema.backup p set stays = true from $schema.backup b
      where b.id = :id and (p.started_at, p.id) < (b.started_at, b.id) and p.deleting_at is null and p.id = (
        select o.id from $schema.backup o
        where ${isBesides} and o.status = 'succeeded' and o.proof = 'proven' and o.deleting_at is null
        order by o.started_at desc, o.id desc limit 1)`,
      { id },
      tx
    )
  }
}
