import type { Database, Problem } from 'busbar/sdk'
import type { TwoFactor } from '../api.js'
import type { LockOut } from '../passwords/lock-out.js'
import { problems } from '../problems.js'
import type { Reauthentication } from '../passwords/reauthentication.js'
import { digestOfRecoveryCode, newRecoveryCodes } from './recovery-code.js'
import type { SecondFactor } from './second-factor.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import { newTotpSecret, totpImage, totpUri } from './totp.js'
import type { TwoFactorStore } from './two-factor-store.js'
import type { UserStore } from '../users/user-store.js'

export function createTwoFactor (parts: {
  readonly database: Database
  readonly store: TwoFactorStore
  readonly users: UserStore
  readonly secondFactor: SecondFactor
  readonly reauthentication: Reauthentication
  readonly lockOut: LockOut
  readonly issuer: SessionIssuer
}): TwoFactor {
  const { database, store, users, secondFactor, reauthentication, lockOut, issuer } = parts

  return {
    async totpStatus (userId) {
      const row = await store.find(userId)
      if (row?.enabled_at == null) return { enabled: false, enabled_at: null, recovery_codes_remaining: 0 }
      return { enabled: true, enabled_at: row.enabled_at, recovery_codes_remaining: await store.countCodes(userId) }
    },

    async enrollTotp (caller, password, client) {
      const user = await reauthentication.confirm(caller, { password }, client, 'never')
      const secret = newTotpSecret()
      await database.transaction(async tx => {
        await users.lock(user.id, tx)
        const existing = await store.lock(user.id, tx)
        if (existing?.enabled_at != null) throw problems.totpEnabled()
        await store.put({ user_id: user.id, secret: secondFactor.sealSecret(user.id, secret), enabled_at: null, last_step: null }, tx)
      })
      const uri = totpUri(user.email, secret)
      return { secret, uri, qr_code: await totpImage(uri) }
    },

    async verifyTotp (caller, code, client) {
      let failure: () => Problem = problems.wrongCode
      return await lockOut.attempt({
        account: caller.user.email,
        ip: client.ip,
        failure: () => failure(),
        prove: async () => await database.transaction(async tx => {
          const user = await users.lock(caller.user.id, tx)
          if (user === undefined) throw problems.sessionEnded()
          const verdict = await secondFactor.enable(user.id, code, tx)
          if (verdict !== 'right') {
            if (verdict === 'reused') failure = problems.codeReused
            return undefined
          }
          const recoveryCodes = newRecoveryCodes()
          await store.replaceCodes(user.id, recoveryCodes.map(digestOfRecoveryCode), tx)
          return { recoveryCodes, grant: await issuer.replaceAll(user, client, tx) }
        })
      })
    },

    async disableTotp (caller, proof, client) {
      await reauthentication.confirm(caller, proof, client, 'always')
      return await database.transaction(async tx => {
        const user = await users.lock(caller.user.id, tx)
        if (user === undefined) throw problems.sessionEnded()
        await store.delete(user.id, tx)
        await store.deleteChallenges(user.id, tx)
        return await issuer.replaceAll(user, client, tx)
      })
    },

    async regenerateRecoveryCodes (caller, proof, client) {
      await reauthentication.confirm(caller, proof, client, 'always')
      const recoveryCodes = newRecoveryCodes()
      await database.transaction(async tx => {
        const row = await store.lock(caller.user.id, tx)
        if (row?.enabled_at == null) throw problems.totpDisabled()
        await store.replaceCodes(caller.user.id, recoveryCodes.map(digestOfRecoveryCode), tx)
      })
      return recoveryCodes
    },

    async resetTotp (caller, userId, proof, client) {
      await reauthentication.confirm(caller, { ...proof, password: proof.password ?? '' }, client, 'when on')
      await database.transaction(async tx => {
        const user = await users.lock(userId, tx)
        if (user === undefined) throw problems.userNotFound()
        const row = await store.lock(user.id, tx)
        if (row?.enabled_at == null) throw problems.totpDisabled()
        await store.delete(user.id, tx)
        await store.deleteChallenges(user.id, tx)
        await issuer.endAll(user.id, tx)
      })
    }
  }
}
