import { randomBytes } from 'node:crypto'
import { type Clock, concerning, type Database, isProblem, type Problem, type Tx } from 'busbar/sdk'
import type { Client, LoginChallenge, SessionGrant, UserRow } from '../api.js'
import { digestOf } from '../digest.js'
import { codeCounters, type LockOut } from '../passwords/lock-out.js'
import { challengePolicy } from '../policy.js'
import { problems } from '../problems.js'
import { readMethod, type SecondFactor } from '../two-factor/second-factor.js'
import type { TwoFactorStore } from '../two-factor/two-factor-store.js'
import type { UserStore } from '../users/user-store.js'
import type { KnownDevices } from './known-devices.js'
import type { NewSignIns } from './new-sign-ins.js'
import { withCookies } from './session-cookies.js'
import type { SessionIssuer } from './session-issuer.js'

interface LoginChallengesParts {
  readonly db: Database
  readonly store: TwoFactorStore
  readonly users: UserStore
  readonly secondFactor: SecondFactor
  readonly lockOut: LockOut
  readonly devices: KnownDevices
  readonly issuer: SessionIssuer
  readonly newSignIns: NewSignIns
  readonly clock: Clock
}

/** What stands between a right password and a session when the user has a second factor. */
export class LoginChallenges {
  constructor(private readonly parts: LoginChallengesParts) {}

  /** Undefined when the password is enough; 429 while codes from there are locked. */
  async open(
    { id: userId, email }: Pick<UserRow, 'id' | 'email'>,
    client: Client,
    tx: Tx
  ): Promise<LoginChallenge | undefined> {
    const { store, secondFactor, lockOut, devices, clock } = this.parts
    const methods = await secondFactor.methods(userId, tx)
    if (methods.length === 0) return undefined
    await lockOut.check(codeCounters(email, devices.origin(email, client)), tx)
    const challenge = randomBytes(32).toString('base64url')
    const now = clock.now()
    const expires_at = new Date(now.getTime() + challengePolicy.lifetimeMs)
    await store.insertChallenge(
      { hash: digestOf(challenge), user_id: userId, attempts: 0, expires_at },
      now,
      tx
    )
    return { challenge, methods, expires_in: challengePolicy.lifetimeMs / 1000 }
  }

  async answer(
    input: { readonly challenge: string; readonly code: string; readonly method?: string },
    client: Client
  ): Promise<SessionGrant> {
    const { db, store, users, secondFactor, lockOut, devices, issuer, newSignIns, clock } = this.parts
    const method = readMethod(input.method)
    const hash = digestOf(input.challenge)
    const opened = await store.findChallenge(hash, clock.now())
    const user = opened === undefined ? undefined : await users.find(opened.user_id)
    if (user === undefined) throw problems.challengeExpired()

    let failure: () => Problem = problems.wrongCode
    return await blaming(
      user,
      async () =>
        await lockOut.attempt({
          counters: codeCounters(user.email, devices.origin(user.email, client)),
          failure: () => failure(),
          // A wrong code returns instead of throwing, so that the attempt it has spent is committed.
          prove: async () =>
            await db.transaction(async tx => {
              // Locked, not held: two challenges of one user that end each other would deadlock.
              const held = await users.lock(user.id, tx)
              if (
                held === undefined ||
                !(await store.spendAttempt(hash, challengePolicy.attempts, clock.now(), tx))
              ) {
                failure = problems.challengeExpired
                return undefined
              }
              const verdict = await secondFactor.spend(held.id, input.code, method, tx)
              if (verdict !== 'right') {
                if (verdict === 'reused') failure = problems.codeReused
                return undefined
              }
              await store.deleteChallenges(held.id, tx)
              await newSignIns.note(held, client, tx)
              return withCookies(await issuer.start(held, client, tx), devices.cookies(held.email, client))
            })
        })
    )
  }
}

/** The password was right by now: the audit log names the user. */
async function blaming<T>(user: UserRow, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw isProblem(error) ? concerning(error, user) : error
  }
}
