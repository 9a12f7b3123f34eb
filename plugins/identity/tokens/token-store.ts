import { countedRows, type Database, type Page, type Role, type Rows, type Scope, type Tx } from 'busbar/sdk'
import type { AccessTokenRow } from '../api.js'

interface NewToken {
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

const select = `
  select t.id, t.name, array[t.scope] as scopes, t.role_at_issue, t.pinned, t.expires_at, t.last_used_at, t.created_at,
    array(select cast(p.project_id as text) from $schema.access_token_pin p where p.token_id = t.id order by p.project_id) as project_ids
  from $schema.access_token t`

export class TokenStore {
  constructor(private readonly db: Database) {}

  /** Newest first, with the count of all that the user has. */
  async list(userId: string, page: Page): Promise<Rows<AccessTokenRow>> {
    const rows = await this.db.sql<AccessTokenRow>(
      `
      ${select} where t.user_id = :userId
      order by t.created_at desc, t.id
      limit :limit offset :offset`,
      { userId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.access_token where user_id = ?', [userId])
    )
  }

  async find(id: string, userId: string): Promise<AccessTokenRow | undefined> {
    const [row] = await this.db.sql<AccessTokenRow>(`${select} where t.id = :id and t.user_id = :userId`, {
      id,
      userId
    })
    return row
  }

  async insert(token: NewToken, projectIds: readonly string[], tx: Tx): Promise<void> {
    await this.#tokens(tx).insert(token)
    if (projectIds.length > 0)
      await this.#pins(tx).insert(projectIds.map(project_id => ({ token_id: token.id, project_id })))
  }

  /** False when the user has no such token. */
  async delete(id: string, userId: string, tx: Tx): Promise<boolean> {
    return (await this.#tokens(tx).where({ id, user_id: userId }).delete()) > 0
  }

  async deleteOfUser(userId: string, tx: Tx): Promise<void> {
    await this.#tokens(tx).where({ user_id: userId }).delete()
  }

  async deletePins(projectId: string, tx: Tx): Promise<void> {
    await this.#pins(tx).where({ project_id: projectId }).delete()
  }

  #tokens(tx?: Tx) {
    return this.db.table<NewToken>('access_token', tx)
  }

  #pins(tx?: Tx) {
    return this.db.table<{ token_id: string; project_id: string }>('access_token_pin', tx)
  }
}
