import { randomBytes } from 'node:crypto'
import { concerning, isProblem, type Clock, type Database, type Problem, type Tx } from 'busbar/sdk'
import type { Client, LoginChallenge, SessionGrant, UserRow } from '../api.js'
import { digestOf } from '../digest.js'
import type { LockOut } from '../passwords/lock-out.js'
import { challengePolicy } from '../policy.js'
import { problems } from '../problems.js'
import { readMethod, type SecondFactor } from '../two-factor/second-factor.js'
import type { SessionIssuer } from './session-issuer.js'
import type { TwoFactorStore } from '../two-factor/two-factor-store.js'
import type { UserStore } from '../users/user-store.js'

/** What stands between a right password and a session when the user has a second factor. */
export interface LoginChallenges {
  /** Undefined when the password is enough. */
  open(userId: string, tx: Tx): Promise<LoginChallenge | undefined>
  answer(input: { readonly challenge: string, readonly code: string, readonly method?: string }, client: Client): Promise<SessionGrant>
}

export function createLoginChallenges (parts: {
  readonly database: Database
  readonly store: TwoFactorStore
  readonly users: UserStore
  readonly secondFactor: SecondFactor
  readonly lockOut: LockOut
  readonly issuer: SessionIssuer
  readonly clock: Clock
}): LoginChallenges {
  const { database, store, users, secondFactor, lockOut, issuer, clock } = parts

  return Object.freeze<LoginChallenges>({
    async open (userId, tx) {
      const methods = await secondFactor.methods(userId, tx)
      if (methods.length === 0) return undefined
      const challenge = randomBytes(32).toString('base64url')
      const now = clock.now()
      const expires_at = new Date(now.getTime() + challengePolicy.lifetimeMs)
      await store.insertChallenge({ hash: digestOf(challenge), user_id: userId, attempts: 0, expires_at }, now, tx)
      return { challenge, methods, expires_in: challengePolicy.lifetimeMs / 1000 }
    },

    async answer (input, client) {
      const method = readMethod(input.method)
      const hash = digestOf(input.challenge)
      const opened = await store.findChallenge(hash, clock.now())
      const user = opened === undefined ? undefined : await users.find(opened.user_id)
      if (user === undefined) throw problems.challengeExpired()

      let failure: () => Problem = problems.wrongCode
      return await blaming(user, async () => await lockOut.attempt({
        account: user.email,
        ip: client.ip,
        failure: () => failure(),
        // A wrong code returns instead of throwing, so that the attempt it has spent is committed.
        prove: async () => await database.transaction(async tx => {
          // Locked, not held: two challenges of one user that end each other would deadlock.
          const held = await users.lock(user.id, tx)
          if (held === undefined || !await store.spendAttempt(hash, challengePolicy.attempts, clock.now(), tx)) {
            failure = problems.challengeExpired
            return undefined
          }
          const verdict = await secondFactor.spend(held.id, input.code, method, tx)
          if (verdict !== 'right') {
            if (verdict === 'reused') failure = problems.codeReused
            return undefined
          }
          await store.deleteChallenges(held.id, tx)
          return await issuer.start(held, client, tx)
        })
      }))
    }
  })
}

/** Whoever gets here knew the password: the audit log says whose. */
async function blaming<T> (user: UserRow, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw isProblem(error) ? concerning(error, user) : error
  }
}
