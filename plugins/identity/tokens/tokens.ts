import { randomUUID } from 'node:crypto'
import type { Clock, Credentials, Database } from 'busbar/sdk'
import type { AccessTokens } from '../api.js'
import { effectiveRole } from '../users/effective-role.js'
import { problems } from '../problems.js'
import type { TokenStore } from './token-store.js'
import type { TokenUseStore } from './token-use-store.js'
import type { UserStore } from '../users/user-store.js'

const dayMs = 86_400_000

export function createTokens (parts: {
  readonly database: Database
  readonly store: TokenStore
  readonly uses: TokenUseStore
  readonly users: UserStore
  readonly credentials: Credentials
  readonly clock: Clock
}): AccessTokens {
  const { database, store, uses, users, credentials, clock } = parts

  return {
    async listTokens (userId, range) {
      const [rows, total] = await Promise.all([store.list(userId, range), store.count(userId)])
      return { rows, total }
    },

    async createToken (caller, { name, scope, expiresInDays, projectIds }) {
      const { value, digest } = credentials.issue('token')
      const created_at = clock.now()
      const expires_at = expiresInDays === null ? null : new Date(created_at.getTime() + expiresInDays * dayMs)
      const pins = [...new Set(projectIds)].sort()
      const id = randomUUID()
      return await database.transaction(async tx => {
        // The role comes from the row, not from the session: a demotion that runs now must not be outlived.
        const user = await users.hold(caller.user.id, tx)
        if (user === undefined) throw problems.sessionEnded()
        const token = { name, role_at_issue: user.role, pinned: pins.length > 0, expires_at, created_at }
        await store.insert({ id, user_id: user.id, hash: digest, scope, ...token }, pins, tx)
        return { row: { id, ...token, scopes: [scope], project_ids: pins, last_used_at: null }, value }
      })
    },

    async inspectToken (userId, tokenId) {
      const [row, user] = await Promise.all([store.find(tokenId, userId), users.find(userId)])
      const scope = row?.scopes[0]
      if (row === undefined || user === undefined || scope === undefined) return undefined
      const { id, email, username } = user
      return {
        row,
        caller: {
          kind: 'token', tokenId, tokenName: row.name, scope, pins: row.pinned ? row.project_ids : null,
          user: { id, email, username, role: effectiveRole(row.role_at_issue, user.role) }
        },
        isExpired: row.expires_at !== null && row.expires_at <= clock.now(),
        uses: await uses.list(tokenId)
      }
    },

    deleteToken: async (userId, tokenId) => await database.transaction(async tx => {
      const isDeleted = await store.delete(tokenId, userId, tx)
      if (isDeleted) await credentials.forget('token', tokenId, tx)
      return isDeleted
    }),

    async removePins (projectId, tx) {
      await store.deletePins(projectId, tx)
      await credentials.forget('project', projectId, tx)
    }
  }
}
