import type { Database, Role, Scope, Tx } from 'busbar/sdk'
import type { AccessTokenRow, ListRange } from '../api.js'

export interface NewToken {
  readonly id: string
  readonly user_id: string
  readonly name: string
  readonly hash: string
  readonly scope: Scope
  readonly role_at_issue: Role
  readonly pinned: boolean
  readonly expires_at: Date | null
  readonly created_at: Date
}

export interface TokenStore {
  list(userId: string, range: ListRange): Promise<readonly AccessTokenRow[]>
  find(id: string, userId: string): Promise<AccessTokenRow | undefined>
  count(userId: string): Promise<number>
  insert(token: NewToken, projectIds: readonly string[], tx: Tx): Promise<void>
  /** False when the user has no such token. */
  delete(id: string, userId: string, tx: Tx): Promise<boolean>
  deleteOfUser(userId: string, tx: Tx): Promise<void>
  deletePins(projectId: string, tx: Tx): Promise<void>
}

const select = `
  select t.id, t.name, array[t.scope] as scopes, t.role_at_issue, t.pinned, t.expires_at, t.last_used_at, t.created_at,
    array(select cast(p.project_id as text) from $schema.access_token_pin p where p.token_id = t.id order by p.project_id) as project_ids
  from $schema.access_token t`

export function createTokenStore (database: Database): TokenStore {
  const tokens = (tx?: Tx) => database.table<NewToken>('access_token', tx)
  const pins = (tx?: Tx) => database.table<{ token_id: string, project_id: string }>('access_token_pin', tx)

  return Object.freeze<TokenStore>({
    list: async (userId, { limit, offset }) => await database.sql<AccessTokenRow>(`
      ${select} where t.user_id = :userId
      order by t.created_at desc, t.id
      limit :limit offset :offset`, { userId, limit, offset }),
    async find (id, userId) {
      const [row] = await database.sql<AccessTokenRow>(`${select} where t.id = :id and t.user_id = :userId`, { id, userId })
      return row
    },
    async count (userId) {
      const [row] = await database.sql<{ total: number }>(
        'select cast(count(*) as int) as total from $schema.access_token where user_id = ?', [userId])
      return row?.total ?? 0
    },
    async insert (token, projectIds, tx) {
      await tokens(tx).insert(token)
      if (projectIds.length > 0) await pins(tx).insert(projectIds.map(project_id => ({ token_id: token.id, project_id })))
    },
    delete: async (id, userId, tx) => await tokens(tx).where({ id, user_id: userId }).delete() > 0,
    async deleteOfUser (userId, tx) {
      await tokens(tx).where({ user_id: userId }).delete()
    },
    async deletePins (projectId, tx) {
      await pins(tx).where({ project_id: projectId }).delete()
    }
  })
}
