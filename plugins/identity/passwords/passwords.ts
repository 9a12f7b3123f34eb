import type { Database } from 'busbar/sdk'
import type { Passwords } from '../api.js'
import { checkPassword, type PasswordHasher } from './password-hasher.js'
import type { PasswordWriter } from './password-writer.js'
import { problems } from '../problems.js'
import type { Reauthentication } from './reauthentication.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { UserStore } from '../users/user-store.js'

export function createPasswords (parts: {
  readonly database: Database
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly writer: PasswordWriter
  readonly reauthentication: Reauthentication
  readonly issuer: SessionIssuer
}): Passwords {
  const { database, users, hasher, writer, reauthentication, issuer } = parts

  return {
    async changePassword (caller, { currentPassword, newPassword }, client) {
      checkPassword(newPassword)
      const confirmed = await reauthentication.confirm(caller, { password: currentPassword }, client, 'never')
      const passwordHash = await hasher.hash(newPassword)
      return await database.transaction(async tx => {
        const user = await users.lock(confirmed.id, tx)
        if (user === undefined || user.password_hash !== confirmed.password_hash) throw problems.wrongPassword()
        await writer.store(user.id, passwordHash, tx)
        return await issuer.replaceAll(user, client, tx)
      })
    },

    async resetPassword (caller, userId, { currentPassword, newPassword }, client) {
      checkPassword(newPassword)
      await reauthentication.confirm(caller, { password: currentPassword }, client, 'never')
      const passwordHash = await hasher.hash(newPassword)
      await database.transaction(async tx => {
        const user = await users.lock(userId, tx)
        if (user === undefined) throw problems.userNotFound()
        await writer.replace(user.id, passwordHash, tx)
      })
    }
  }
}
