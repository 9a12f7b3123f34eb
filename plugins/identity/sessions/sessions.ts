import type { IncomingHttpHeaders } from 'node:http'
import type { Clock, Credentials, Database } from 'busbar/sdk'
import type { Client, LoginOutcome, SessionGrant, Sessions } from '../api.js'
import { normaliseEmail } from '../users/email.js'
import type { LockOut } from '../passwords/lock-out.js'
import type { LoginChallenges } from './login-challenges.js'
import type { PasswordHasher } from '../passwords/password-hasher.js'
import { problems } from '../problems.js'
import { signedOutCookies } from './session-cookies.js'
import type { SessionIssuer } from './session-issuer.js'
import type { SessionStore } from './session-store.js'
import type { UserStore } from '../users/user-store.js'

export function createSessions (parts: {
  readonly database: Database
  readonly store: SessionStore
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly lockOut: LockOut
  readonly issuer: SessionIssuer
  readonly challenges: LoginChallenges
  readonly credentials: Credentials
  readonly clock: Clock
}): Sessions {
  const { database, store, users, hasher, lockOut, issuer, challenges, credentials, clock } = parts

  async function prove (email: string, password: string, client: Client): Promise<LoginOutcome | undefined> {
    const user = await users.findByEmail(email)
    if (!await hasher.verify(user?.password_hash, password) || user === undefined) return undefined
    return await database.transaction(async tx => {
      // The password may have been changed while it was checked: then the sessions have ended, this one too.
      const held = await users.hold(user.id, tx)
      if (held === undefined || held.password_hash !== user.password_hash) return undefined
      const challenge = await challenges.open(held.id, tx)
      return challenge === undefined
        ? { kind: 'signedIn', grant: await issuer.start(held, client, tx) }
        : { kind: 'challenged', challenge }
    })
  }

  async function refresh (headers: IncomingHttpHeaders): Promise<SessionGrant | undefined> {
    const hash = credentials.refreshDigest(headers)
    if (hash === undefined) return undefined
    return await database.transaction(async tx => {
      const now = clock.now()
      const sessionId = await store.holdByRefresh(hash, tx)
      if (sessionId === undefined) return undefined
      const goodUntil = await store.spend(hash, now, tx)
      if (goodUntil !== undefined && goodUntil > now) return await issuer.renew(sessionId, userId => users.find(userId, tx), tx)
      // Shown twice: one of the two who showed it has stolen it, and nobody can say which.
      await store.deleteById(sessionId, tx)
      await credentials.forget('session', sessionId, tx)
      return undefined
    })
  }

  return {
    login: async ({ email, password }, client) => {
      const account = normaliseEmail(email)
      return await lockOut.attempt({
        account,
        ip: client.ip,
        prove: () => prove(account, password, client),
        failure: problems.wrongCredentials,
        partial: outcome => outcome.kind === 'challenged'
      })
    },
    verifyLogin: async (input, client) => await challenges.answer(input, client),
    refresh,
    listSessions: async userId => await store.list(userId, clock.now()),
    endSession: async (userId, sessionId) => await database.transaction(async tx => {
      const hasEnded = await store.delete(sessionId, userId, tx)
      if (hasEnded) await credentials.forget('session', sessionId, tx)
      return hasEnded
    }),
    signedOutCookies: async () => signedOutCookies
  }
}
