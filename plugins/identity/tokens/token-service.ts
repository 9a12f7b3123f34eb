import { randomUUID } from 'node:crypto'
import type { Clock, Credentials, Database, Page, Rows, SessionCaller, Tx } from 'busbar/sdk'
import type { AccessTokenRow, AccessTokens, InspectedToken, NewAccessToken } from '../api.js'
import { problems } from '../problems.js'
import { effectiveRole } from '../users/effective-role.js'
import type { UserStore } from '../users/user-store.js'
import type { TokenStore } from './token-store.js'
import type { TokenUseStore } from './token-use-store.js'

const dayMs = 86_400_000

interface TokenServiceParts {
  readonly db: Database
  readonly store: TokenStore
  readonly uses: TokenUseStore
  readonly users: UserStore
  readonly credentials: Credentials
  readonly clock: Clock
}

export class TokenService implements AccessTokens {
  constructor(private readonly parts: TokenServiceParts) {}

  async listTokens(userId: string, page: Page): Promise<Rows<AccessTokenRow>> {
    return await this.parts.store.list(userId, page)
  }

  async createToken(
    caller: SessionCaller,
    { name, scope, expiresInDays, projectIds }: NewAccessToken
  ): ReturnType<AccessTokens['createToken']> {
    const { db, store, users, credentials, clock } = this.parts
    const { value, digest } = credentials.issue('token')
    const created_at = clock.now()
    const expires_at = expiresInDays === null ? null : new Date(created_at.getTime() + expiresInDays * dayMs)
    const pins = [...new Set(projectIds)].sort()
    const id = randomUUID()
    return await db.transaction(async tx => {
      // The role comes from the row, not from the session: a demotion that runs now must not be outlived.
      const user = await users.hold(caller.user.id, tx)
      if (user === undefined) throw problems.sessionEnded()
      const token = { name, role_at_issue: user.role, pinned: pins.length > 0, expires_at, created_at }
      await store.insert({ id, user_id: user.id, hash: digest, scope, ...token }, pins, tx)
      return { row: { id, ...token, scopes: [scope], project_ids: pins, last_used_at: null }, value }
    })
  }

  async inspectToken(userId: string, tokenId: string): Promise<InspectedToken | undefined> {
    const { store, uses, users, clock } = this.parts
    const [row, user] = await Promise.all([store.find(tokenId, userId), users.find(userId)])
    const scope = row?.scopes[0]
    if (row === undefined || user === undefined || scope === undefined) return undefined
    const { id, email, username } = user
    return {
      row,
      caller: {
        kind: 'token',
        tokenId,
        tokenName: row.name,
        scope,
        pins: row.pinned ? row.project_ids : null,
        user: { id, email, username, role: effectiveRole(row.role_at_issue, user.role) }
      },
      isExpired: row.expires_at !== null && row.expires_at <= clock.now(),
      uses: await uses.list(tokenId)
    }
  }

  async deleteToken(userId: string, tokenId: string): Promise<boolean> {
    const { db, store, credentials } = this.parts
    return await db.transaction(async tx => {
      const isDeleted = await store.delete(tokenId, userId, tx)
      if (isDeleted) await credentials.forget('token', tokenId, tx)
      return isDeleted
    })
  }

  async removePins(projectId: string, tx: Tx): Promise<void> {
    const { store, credentials } = this.parts
    await store.deletePins(projectId, tx)
    await credentials.forget('project', projectId, tx)
  }
}
