import type { Database } from 'busbar/sdk'
import type { TokenUse } from '../api.js'

export interface TokenUseStore {
  /** Writes a use down unless one after `recent` was; one of a token that is gone is none. */
  put(tokenId: string, use: TokenUse, recent: Date): Promise<void>
  list(tokenId: string): Promise<readonly TokenUse[]>
}

export function createTokenUseStore (database: Database): TokenUseStore {
  const { schema } = database
  const put = database.statement<never, [string, string, string | null, Date, Date]>('touch_token_use', `
    insert into ${schema}.access_token_use as u (token_id, operation, project_id, last_used_at)
    select t.id, $2, $3, $4 from ${schema}.access_token t where t.id = $1
    on conflict (token_id, operation, project_id) do update set last_used_at = excluded.last_used_at where u.last_used_at <= $5`)

  return Object.freeze<TokenUseStore>({
    async put (tokenId, { operation, project_id: projectId, last_used_at: at }, recent) {
      await put([tokenId, operation, projectId, at, recent])
    },
    list: async tokenId => await database.table<TokenUse & { token_id: string }>('access_token_use')
      .where({ token_id: tokenId }).select('operation', 'project_id', 'last_used_at').orderBy(['operation', 'project_id'])
  })
}
