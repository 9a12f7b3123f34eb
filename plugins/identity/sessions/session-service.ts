import type { IncomingHttpHeaders } from 'node:http'
import type { Clock, Cookie, Credentials, Database } from 'busbar/sdk'
import type { Client, LoginOutcome, SessionGrant, SessionRow, Sessions } from '../api.js'
import { type LockOut, passwordCounter } from '../passwords/lock-out.js'
import type { PasswordHasher } from '../passwords/password-hasher.js'
import { problems } from '../problems.js'
import { normaliseEmail } from '../users/email.js'
import type { UserStore } from '../users/user-store.js'
import type { KnownDevices } from './known-devices.js'
import type { LoginChallenges } from './login-challenges.js'
import type { NewSignIns } from './new-sign-ins.js'
import { signedOutCookies, withCookies } from './session-cookies.js'
import type { SessionIssuer } from './session-issuer.js'
import type { SessionStore } from './session-store.js'

interface SessionServiceParts {
  readonly db: Database
  readonly store: SessionStore
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly lockOut: LockOut
  readonly issuer: SessionIssuer
  readonly challenges: LoginChallenges
  readonly newSignIns: NewSignIns
  readonly devices: KnownDevices
  readonly credentials: Credentials
  readonly clock: Clock
}

export class SessionService implements Sessions {
  constructor(private readonly parts: SessionServiceParts) {}

  async login({ email, password }: Parameters<Sessions['login']>[0], client: Client): Promise<LoginOutcome> {
    const { lockOut, devices } = this.parts
    const account = normaliseEmail(email)
    return await lockOut.attempt({
      counters: [passwordCounter(account, devices.origin(account, client))],
      prove: () => this.#prove(account, password, client),
      failure: problems.wrongCredentials,
      partial: outcome => outcome.kind === 'challenged'
    })
  }

  async verifyLogin(input: Parameters<Sessions['verifyLogin']>[0], client: Client): Promise<SessionGrant> {
    return await this.parts.challenges.answer(input, client)
  }

  async refresh(headers: IncomingHttpHeaders): Promise<SessionGrant | undefined> {
    const { db, store, users, issuer, credentials, clock } = this.parts
    const hash = credentials.refreshDigest(headers)
    if (hash === undefined) return undefined
    return await db.transaction(async tx => {
      const now = clock.now()
      const sessionId = await store.holdByRefresh(hash, tx)
      if (sessionId === undefined) return undefined
      const goodUntil = await store.spend(hash, now, tx)
      if (goodUntil !== undefined && goodUntil > now)
        return await issuer.renew(sessionId, userId => users.find(userId, tx), tx)
      // Shown twice: one of the two clients has stolen it, and which one is unknown.
      await store.deleteById(sessionId, tx)
      await credentials.forget('session', sessionId, tx)
      return undefined
    })
  }

  async listSessions(userId: string): Promise<readonly SessionRow[]> {
    const { store, clock } = this.parts
    return await store.list(userId, clock.now())
  }

  async endSession(userId: string, sessionId: string): Promise<boolean> {
    const { db, store, credentials } = this.parts
    return await db.transaction(async tx => {
      const hasEnded = await store.delete(sessionId, userId, tx)
      if (hasEnded) await credentials.forget('session', sessionId, tx)
      return hasEnded
    })
  }

  async signedOutCookies(): Promise<readonly Cookie[]> {
    return signedOutCookies
  }

  async #prove(email: string, password: string, client: Client): Promise<LoginOutcome | undefined> {
    const { db, users, hasher, issuer, challenges, devices, newSignIns } = this.parts
    const user = await users.findByEmail(email)
    if (!(await hasher.verify(user?.password_hash, password)) || user === undefined) return undefined
    return await db.transaction(async tx => {
      // The password may have been changed while it was checked: then the sessions have ended, this one too.
      const held = await users.hold(user.id, tx)
      if (held === undefined || held.password_hash !== user.password_hash) return undefined
      const challenge = await challenges.open(held, client, tx)
      if (challenge !== undefined) return { kind: 'challenged', challenge }
      await newSignIns.note(held, client, tx)
      return {
        kind: 'signedIn',
        grant: withCookies(await issuer.start(held, client, tx), devices.cookies(held.email, client))
      }
    })
  }
}
