import type { Database, Problem, SessionCaller } from 'busbar/sdk'
import type { Client } from '../api.js'
import type { LockOut } from './lock-out.js'
import type { PasswordHasher } from './password-hasher.js'
import { problems } from '../problems.js'
import { readMethod, type SecondFactor } from '../two-factor/second-factor.js'
import type { StoredUser, UserStore } from '../users/user-store.js'

export interface OwnProof { readonly password: string, readonly code?: string, readonly method?: string }

/** Asks somebody who is signed in to prove it again, before what a stolen session must not do. */
export interface Reauthentication {
  /**
   * Returns the user as stored. `factor`: whether a code is asked for beside the password. One attempt
   * for both, so that a right password does not forgive wrong codes.
   */
  confirm(caller: SessionCaller, proof: OwnProof, client: Client, factor: 'never' | 'when on' | 'always'): Promise<StoredUser>
}

export function createReauthentication (parts: {
  readonly database: Database
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly secondFactor: SecondFactor
  readonly lockOut: LockOut
}): Reauthentication {
  const { database, users, hasher, secondFactor, lockOut } = parts

  return Object.freeze<Reauthentication>({
    async confirm (caller, proof, client, factor) {
      const method = readMethod(proof.method)
      const user = await users.find(caller.user.id)
      if (user === undefined) throw problems.sessionEnded()
      const isOn = factor !== 'never' && (await secondFactor.methods(user.id)).length > 0
      if (factor === 'always' && !isOn) throw problems.totpDisabled()
      const { code } = proof
      if (isOn && (code === undefined || code === '')) throw problems.codeRequired()

      let failure: () => Problem = problems.wrongPassword
      return await lockOut.attempt({
        account: user.email,
        ip: client.ip,
        failure: () => failure(),
        prove: async () => {
          if (!await hasher.verify(user.password_hash, proof.password)) return undefined
          if (!isOn || code === undefined) return user
          const verdict = await database.transaction(async tx => await secondFactor.spend(user.id, code, method, tx))
          if (verdict === 'right') return user
          failure = verdict === 'reused' ? problems.codeReused : problems.wrongCode
          return undefined
        }
      })
    }
  })
}
