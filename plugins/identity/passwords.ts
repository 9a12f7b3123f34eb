import type { Clock, Database, Tx } from 'busbar/sdk'
import type { Passwords } from './api.js'
import { checkPassword, type PasswordHasher } from './password-hasher.js'
import { problems } from './problems.js'
import type { Reauthentication } from './reauthentication.js'
import type { SessionIssuer } from './session-issuer.js'
import type { TokenStore } from './token-store.js'
import type { TwoFactorStore } from './two-factor-store.js'
import type { UserStore } from './user-store.js'

export function createPasswords (parts: {
  readonly database: Database
  readonly users: UserStore
  readonly tokens: TokenStore
  readonly twoFactor: TwoFactorStore
  readonly hasher: PasswordHasher
  readonly reauthentication: Reauthentication
  readonly issuer: SessionIssuer
  readonly clock: Clock
}): Passwords {
  const { database, users, tokens, twoFactor, hasher, reauthentication, issuer, clock } = parts

  /** A login that waits for its second factor was begun with the old password. */
  async function store (userId: string, password_hash: string, tx: Tx): Promise<void> {
    await users.update(userId, { password_hash }, clock.now(), tx)
    await twoFactor.deleteChallenges(userId, tx)
  }

  return {
    async changePassword (caller, { currentPassword, newPassword }, client) {
      checkPassword(newPassword)
      const confirmed = await reauthentication.confirm(caller, { password: currentPassword }, client, 'never')
      const password_hash = await hasher.hash(newPassword)
      return await database.transaction(async tx => {
        const user = await users.lock(confirmed.id, tx)
        if (user === undefined || user.password_hash !== confirmed.password_hash) throw problems.wrongPassword()
        await store(user.id, password_hash, tx)
        return await issuer.replaceAll(user, client, tx)
      })
    },

    async resetPassword (caller, userId, { currentPassword, newPassword }, client) {
      checkPassword(newPassword)
      await reauthentication.confirm(caller, { password: currentPassword }, client, 'never')
      const password_hash = await hasher.hash(newPassword)
      await database.transaction(async tx => {
        const user = await users.lock(userId, tx)
        if (user === undefined) throw problems.userNotFound()
        await store(user.id, password_hash, tx)
        await tokens.deleteOfUser(user.id, tx)
        await issuer.endAll(user.id, tx)
      })
    }
  }
}
