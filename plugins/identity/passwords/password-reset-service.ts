import { randomBytes } from 'node:crypto'
import type { Clock, Database, Tx } from 'busbar/sdk'
import type { PasswordResets } from '../api.js'
import { digestOf } from '../digest.js'
import { passwordResetPolicy } from '../policy.js'
import { problems } from '../problems.js'
import { normaliseEmail } from '../users/email.js'
import type { UserStore } from '../users/user-store.js'
import type { LockOut } from './lock-out.js'
import { checkPassword, type PasswordHasher } from './password-hasher.js'
import type { PasswordResetStore } from './password-reset-store.js'
import type { PasswordWriter } from './password-writer.js'

/** How long what has expired is kept, so that its link is told apart from nonsense. */
const keptMs = 24 * 3_600_000

interface PasswordResetServiceParts {
  readonly db: Database
  readonly store: PasswordResetStore
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly writer: PasswordWriter
  readonly lockOut: LockOut
  readonly clock: Clock
}

export class PasswordResetService implements PasswordResets {
  constructor(private readonly parts: PasswordResetServiceParts) {}

  async openPasswordReset(email: string, tx: Tx): ReturnType<PasswordResets['openPasswordReset']> {
    const { store, users, clock } = this.parts
    const found = await users.findByEmail(normaliseEmail(email), tx)
    // Locked: two jobs for one user that count at the same time would both find room.
    const user = found === undefined ? undefined : await users.lock(found.id, tx)
    if (user === undefined) return undefined
    const now = clock.now()
    const { perHour, lifetimeMs } = passwordResetPolicy
    if ((await store.countSince(user.id, new Date(now.getTime() - 3_600_000), tx)) >= perHour)
      return undefined
    await store.deleteBefore(user.id, new Date(now.getTime() - keptMs), tx)
    await store.replaceAll(user.id, now, tx)
    const secret = randomBytes(32).toString('hex')
    const expiresAt = new Date(now.getTime() + lifetimeMs)
    await store.insert(
      { hash: digestOf(secret), user_id: user.id, created_at: now, expires_at: expiresAt },
      tx
    )
    return { email: user.email, secret, expiresAt }
  }

  async completePasswordReset({
    secret,
    newPassword
  }: Parameters<PasswordResets['completePasswordReset']>[0]): Promise<string> {
    const { db, store, users, hasher, writer, lockOut, clock } = this.parts
    checkPassword(newPassword, 'new_password')
    const hash = digestOf(secret)
    const { user_id: userId } = await this.#find(hash)
    const passwordHash = await hasher.hash(newPassword)
    const user = await db.transaction(async tx => {
      const locked = await users.lock(userId, tx)
      if (locked === undefined) throw problems.resetInvalid()
      if (!(await store.spend(hash, clock.now(), tx))) return undefined
      await writer.replace(locked.id, passwordHash, tx)
      return locked
    })
    // Used, replaced or late while the new password was hashed: the row says which.
    if (user === undefined) {
      await this.#find(hash)
      throw problems.resetUsed()
    }
    await lockOut.clearFailures(user.email)
    return user.id
  }

  async #find(hash: string) {
    const { store, clock } = this.parts
    const reset = await store.find(hash)
    if (reset === undefined || reset.replaced_at !== null) throw problems.resetInvalid()
    if (reset.used_at !== null) throw problems.resetUsed()
    if (reset.expires_at <= clock.now()) throw problems.resetExpired()
    return reset
  }
}
