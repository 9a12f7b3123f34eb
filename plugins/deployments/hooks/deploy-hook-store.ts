import type { Database, Tx } from 'busbar/sdk'

interface DeployHookRow {
  readonly application_id: string
  readonly project_id: string
  readonly token_hash: string
  /** Sealed. */
  readonly token: string
  readonly created_at: Date
}

/** The one deploy hook of an application. */
export class DeployHookStore {
  readonly #db: Database
  constructor(db: Database) {
    this.#db = db
  }

  async find(projectId: string, applicationId: string): Promise<DeployHookRow | undefined> {
    return (
      await this.#db.sql<DeployHookRow>(
        'select * from $schema.deploy_hook where project_id = ? and application_id = ?',
        [projectId, applicationId]
      )
    )[0]
  }

  async findByHash(tokenHash: string): Promise<DeployHookRow | undefined> {
    return (
      await this.#db.sql<DeployHookRow>('select * from $schema.deploy_hook where token_hash = ?', [tokenHash])
    )[0]
  }

  /** True when it replaces another one. */
  async put(row: DeployHookRow, tx: Tx): Promise<boolean> {
    const [written] = await this.#db.sql<{ replaces: boolean }>(
      `
      insert into $schema.deploy_hook (application_id, project_id, token_hash, token, created_at)
      values (:application_id, :project_id, :token_hash, :token, :created_at)
      on conflict (application_id) do update set token_hash = excluded.token_hash, token = excluded.token, created_at = excluded.created_at
      returning xmax <> 0 as replaces`,
      { ...row },
      tx
    )
    return written?.replaces === true
  }

  async remove(projectId: string, applicationId: string, tx: Tx): Promise<void> {
    await this.#db.sql(
      'delete from $schema.deploy_hook where project_id = ? and application_id = ?',
      [projectId, applicationId],
      tx
    )
  }
}
