import type { Database } from 'busbar/sdk'
import type { TokenUse } from '../api.js'

export class TokenUseStore {
  readonly #put

  constructor(private readonly db: Database) {
    this.#put = db.statement<never, [string, string, string | null, Date, Date]>(
      'touch_token_use',
      `
      insert into ${db.schema}.access_token_use as u (token_id, operation, project_id, last_used_at)
      select t.id, $2, $3, $4 from ${db.schema}.access_token t where t.id = $1
      on conflict (token_id, operation, project_id) do update set last_used_at = excluded.last_used_at where u.last_used_at <= $5`
    )
  }

  /** Writes a use down unless one after `recent` was; one of a token that is gone is none. */
  async put(
    tokenId: string,
    { operation, project_id: projectId, last_used_at: at }: TokenUse,
    recent: Date
  ): Promise<void> {
    await this.#put([tokenId, operation, projectId, at, recent])
  }

  async list(tokenId: string): Promise<readonly TokenUse[]> {
    return await this.db
      .table<TokenUse & { token_id: string }>('access_token_use')
      .where({ token_id: tokenId })
      .select('operation', 'project_id', 'last_used_at')
      .orderBy(['operation', 'project_id'])
  }
}
