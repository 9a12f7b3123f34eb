import { randomUUID } from 'node:crypto'
import type { Clock, Credentials, Tx } from 'busbar/sdk'
import type { Client, LoginResult, SessionGrant, UserRow } from '../api.js'
import type { SessionPolicy } from '../policy.js'
import { sessionCookies } from './session-cookies.js'
import type { SessionSecrets, SessionStore } from './session-store.js'

interface SessionIssuerParts {
  readonly store: SessionStore
  readonly credentials: Credentials
  readonly policy: SessionPolicy
  readonly clock: Clock
}

/** Makes and renews sessions inside the transaction of the caller, which has decided that the user may have one. */
export class SessionIssuer {
  constructor(private readonly parts: SessionIssuerParts) {}

  async start(user: UserRow, client: Client, tx: Tx): Promise<SessionGrant> {
    const { store, clock } = this.parts
    const now = clock.now()
    const { stored, grant } = this.#makeSecrets(now)
    const id = randomUUID()
    await store.deleteExpired(user.id, now, tx)
    await store.insert(
      { id, user_id: user.id, ip_address: client.ip, user_agent: (client.userAgent ?? '').slice(0, 512) },
      stored,
      now,
      tx
    )
    return grant(id, user)
  }

  /** Ends every session of the user and starts a new one. */
  async replaceAll(user: UserRow, client: Client, tx: Tx): Promise<SessionGrant> {
    await this.endAll(user.id, tx)
    return await this.start(user, client, tx)
  }

  /** `why` is what has become of the user: of another role the kernel is told, as sockets outlive that. */
  async endAll(userId: string, tx: Tx, why: 'user' | 'role' = 'user'): Promise<void> {
    const { store, credentials } = this.parts
    await store.deleteOfUser(userId, tx)
    await credentials.forget(why, userId, tx)
  }

  /** New secrets for a session; undefined when it has ended or its user has gone. */
  async renew(
    sessionId: string,
    findUser: (userId: string) => Promise<UserRow | undefined>,
    tx: Tx
  ): Promise<SessionGrant | undefined> {
    const { store, credentials, clock } = this.parts
    const now = clock.now()
    const { stored, grant } = this.#makeSecrets(now)
    const renewed = await store.renew(sessionId, stored, now, tx)
    const user = renewed === undefined ? undefined : await findUser(renewed.user_id)
    if (user === undefined) return undefined
    await credentials.forget('session', sessionId, tx)
    return grant(sessionId, user)
  }

  #makeSecrets(now: Date): {
    readonly stored: SessionSecrets
    readonly grant: (sessionId: string, user: UserRow) => SessionGrant
  } {
    const { credentials, policy } = this.parts
    const secret = credentials.issue('session')
    const refresh = credentials.issue('refresh')
    return {
      stored: {
        secret_hash: secret.digest,
        secret_expires_at: new Date(now.getTime() + policy.secretMs),
        refresh_hash: refresh.digest,
        expires_at: new Date(now.getTime() + policy.refreshMs)
      },
      grant: (sessionId, user) => ({
        sessionId,
        result: {
          token: secret.value,
          refresh_token: refresh.value,
          expires_in: Math.floor(policy.secretMs / 1000),
          user: publicUser(user)
        },
        cookies: sessionCookies(secret.value, refresh.value, policy)
      })
    }
  }
}

const publicUser = ({ id, email, role, username, first_name, last_name }: UserRow): LoginResult['user'] => ({
  id,
  email,
  role,
  username,
  first_name,
  last_name
})
