import type { Database, SessionCaller } from 'busbar/sdk'
import type { Client, Passwords, SessionGrant } from '../api.js'
import { problems } from '../problems.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { UserStore } from '../users/user-store.js'
import { checkPassword, type PasswordHasher } from './password-hasher.js'
import type { PasswordWriter } from './password-writer.js'
import type { Reauthentication } from './reauthentication.js'

interface PasswordServiceParts {
  readonly db: Database
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly writer: PasswordWriter
  readonly reauthentication: Reauthentication
  readonly issuer: SessionIssuer
}

export class PasswordService implements Passwords {
  constructor(private readonly parts: PasswordServiceParts) {}

  async changePassword(
    caller: SessionCaller,
    { currentPassword, newPassword }: Parameters<Passwords['changePassword']>[1],
    client: Client
  ): Promise<SessionGrant> {
    const { db, users, hasher, writer, reauthentication, issuer } = this.parts
    checkPassword(newPassword, 'new_password')
    const confirmed = await reauthentication.confirm(caller, { password: currentPassword }, client, 'never')
    const passwordHash = await hasher.hash(newPassword)
    return await db.transaction(async tx => {
      const user = await users.lock(confirmed.id, tx)
      if (user === undefined || user.password_hash !== confirmed.password_hash) throw problems.wrongPassword()
      await writer.store(user.id, passwordHash, tx)
      return await issuer.replaceAll(user, client, tx)
    })
  }

  async resetPassword(
    caller: SessionCaller,
    userId: string,
    { currentPassword, newPassword }: Parameters<Passwords['resetPassword']>[2],
    client: Client
  ): Promise<void> {
    const { db, users, hasher, writer, reauthentication } = this.parts
    checkPassword(newPassword, 'new_password')
    await reauthentication.confirm(caller, { password: currentPassword }, client, 'never')
    const passwordHash = await hasher.hash(newPassword)
    await db.transaction(async tx => {
      const user = await users.lock(userId, tx)
      if (user === undefined) throw problems.userNotFound()
      await writer.replace(user.id, passwordHash, tx)
    })
  }
}
