import type { Clock, Tx } from 'busbar/sdk'
import type { PasswordResetStore } from './password-reset-store.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { TokenStore } from '../tokens/token-store.js'
import type { TwoFactorStore } from '../two-factor/two-factor-store.js'
import type { UserStore } from '../users/user-store.js'

/** What a new password does to everything that was begun with the old one. */
export interface PasswordWriter {
  /** Ends logins that wait for a second factor, and reset links. Sessions are the caller's to end. */
  store(userId: string, passwordHash: string, tx: Tx): Promise<void>
  /** Somebody who could not show the old one sets it: all sessions and tokens end too. */
  replace(userId: string, passwordHash: string, tx: Tx): Promise<void>
}

export function createPasswordWriter (parts: {
  readonly users: UserStore
  readonly tokens: TokenStore
  readonly twoFactor: TwoFactorStore
  readonly resets: PasswordResetStore
  readonly issuer: SessionIssuer
  readonly clock: Clock
}): PasswordWriter {
  const { users, tokens, twoFactor, resets, issuer, clock } = parts

  async function store (userId: string, password_hash: string, tx: Tx): Promise<void> {
    const now = clock.now()
    await users.update(userId, { password_hash }, now, tx)
    await twoFactor.deleteChallenges(userId, tx)
    await resets.replaceAll(userId, now, tx)
  }

  return Object.freeze<PasswordWriter>({
    store,
    async replace (userId, passwordHash, tx) {
      await store(userId, passwordHash, tx)
      await tokens.deleteOfUser(userId, tx)
      await issuer.endAll(userId, tx)
    }
  })
}
