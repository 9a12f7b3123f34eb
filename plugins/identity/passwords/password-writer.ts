import type { Clock, Tx } from 'busbar/sdk'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { TokenStore } from '../tokens/token-store.js'
import type { TwoFactorStore } from '../two-factor/two-factor-store.js'
import type { UserStore } from '../users/user-store.js'
import type { PasswordResetStore } from './password-reset-store.js'

interface PasswordWriterParts {
  readonly users: UserStore
  readonly tokens: TokenStore
  readonly twoFactor: TwoFactorStore
  readonly resets: PasswordResetStore
  readonly issuer: SessionIssuer
  readonly clock: Clock
}

/** What a new password does to everything that was begun with the old one. */
export class PasswordWriter {
  constructor(private readonly parts: PasswordWriterParts) {}

  /** Ends logins that wait for a second factor, and reset links. Sessions are the caller's to end. */
  async store(userId: string, password_hash: string, tx: Tx): Promise<void> {
    const { users, twoFactor, resets, clock } = this.parts
    const now = clock.now()
    await users.update(userId, { password_hash }, now, tx)
    await twoFactor.deleteChallenges(userId, tx)
    await resets.replaceAll(userId, now, tx)
  }

  /** Set without showing the old one: all sessions and tokens end too. */
  async replace(userId: string, passwordHash: string, tx: Tx): Promise<void> {
    const { tokens, issuer } = this.parts
    await this.store(userId, passwordHash, tx)
    await tokens.deleteOfUser(userId, tx)
    await issuer.endAll(userId, tx)
  }
}
