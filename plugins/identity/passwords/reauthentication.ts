import type { Database, Problem, SessionCaller } from 'busbar/sdk'
import type { Client } from '../api.js'
import { problems } from '../problems.js'
import type { KnownDevices } from '../sessions/known-devices.js'
import { readMethod, type SecondFactor } from '../two-factor/second-factor.js'
import type { StoredUser, UserStore } from '../users/user-store.js'
import { type LockOut, passwordCounter, sessionCounter } from './lock-out.js'
import type { PasswordHasher } from './password-hasher.js'

interface OwnProof {
  readonly password: string
  readonly code?: string
  readonly method?: string
}

interface ReauthenticationParts {
  readonly db: Database
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly secondFactor: SecondFactor
  readonly lockOut: LockOut
  readonly devices: KnownDevices
}

/** Asks a signed-in user for a proof again, before what a stolen session must not do. */
export class Reauthentication {
  constructor(private readonly parts: ReauthenticationParts) {}

  /**
   * Returns the user as stored. `factor`: whether a code is asked for beside the password. One attempt
   * for both, so that a right password does not reset the count of wrong codes.
   */
  async confirm(
    caller: SessionCaller,
    proof: OwnProof,
    client: Client,
    factor: 'never' | 'when on' | 'always'
  ): Promise<StoredUser> {
    const { db, users, hasher, secondFactor, lockOut, devices } = this.parts
    const method = readMethod(proof.method)
    const user = await users.find(caller.user.id)
    if (user === undefined) throw problems.sessionEnded()
    const isOn = factor !== 'never' && (await secondFactor.methods(user.id)).length > 0
    if (factor === 'always' && !isOn) throw problems.totpDisabled()
    const { code } = proof
    if (isOn && (code === undefined || code === '')) throw problems.codeRequired()

    let failure: () => Problem = problems.wrongPassword
    return await lockOut.attempt({
      counters: [sessionCounter(user.email, caller.sessionId)],
      alsoCounts: [passwordCounter(user.email, devices.origin(user.email, client))],
      failure: () => failure(),
      prove: async () => {
        if (!(await hasher.verify(user.password_hash, proof.password))) return undefined
        if (!isOn || code === undefined) return user
        const verdict = await db.transaction(async tx => await secondFactor.spend(user.id, code, method, tx))
        if (verdict === 'right') return user
        failure = verdict === 'reused' ? problems.codeReused : problems.wrongCode
        return undefined
      }
    })
  }
}
