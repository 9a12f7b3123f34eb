import type { Database, Tx } from 'busbar/sdk'

interface Proof {
  readonly at: Date
  readonly ms: number
  readonly rows: number
  readonly detail: string
}

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

  async proven(id: string, proof: Proof): Promise<void> {
    await this.db.sql(
      `update $schema.backup set proof = 'proven', proof_at = :at, proof_ms = :ms, proof_rows = :rows, proof_detail = :detail, proof_error = null
      where id = :id`,
      { id, ...proof }
    )
  }

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
  }
}
