import type { Clock, Credentials, Database, Instance, Secrets } from 'busbar/sdk'
import type { Identity } from './api.js'
import { createAlertPreferenceStore } from './users/alert-preference-store.js'
import { createAlertSettings } from './users/alert-preferences.js'
import { createInstanceStore } from './instance-store.js'
import { createInvitationStore } from './users/invitation-store.js'
import { createInvitations } from './users/invitations.js'
import { createLockOut } from './passwords/lock-out.js'
import { createLockOutStore } from './passwords/lock-out-store.js'
import { createLoginChallenges } from './sessions/login-challenges.js'
import { createPasswordHasher, type PasswordHasher } from './passwords/password-hasher.js'
import { createPasswordResetStore } from './passwords/password-reset-store.js'
import { createPasswordResets } from './passwords/password-resets.js'
import { createPasswordWriter } from './passwords/password-writer.js'
import { createPasswords } from './passwords/passwords.js'
import { readSessionPolicy } from './policy.js'
import { createReauthentication } from './passwords/reauthentication.js'
import { createSecondFactor } from './two-factor/second-factor.js'
import { createSessionIssuer } from './sessions/session-issuer.js'
import { createSessionStore } from './sessions/session-store.js'
import { createSessions } from './sessions/sessions.js'
import { createTokenStore } from './tokens/token-store.js'
import { createTokenUseStore } from './tokens/token-use-store.js'
import { createTokens } from './tokens/tokens.js'
import { createTwoFactor } from './two-factor/two-factor.js'
import { createTwoFactorStore } from './two-factor/two-factor-store.js'
import { createUserStore } from './users/user-store.js'
import { createUsers } from './users/users.js'

export interface IdentityParts {
  readonly database: Database
  readonly secrets: Secrets
  readonly clock: Clock
  readonly credentials: Credentials
  readonly environment: Instance['environment']
  readonly hasher?: PasswordHasher
}

/** Puts identity together: stores over one schema, and the rules between them. */
export function createIdentity ({ database, secrets, clock, credentials, environment, hasher = createPasswordHasher() }: IdentityParts): Identity {
  const policy = readSessionPolicy(environment)
  const lockOut = createLockOut(createLockOutStore(database), clock)

  const users = createUserStore(database)
  const sessions = createSessionStore(database)
  const tokens = createTokenStore(database)
  const twoFactor = createTwoFactorStore(database)
  const resets = createPasswordResetStore(database)
  const invitations = createInvitationStore(database)

  const issuer = createSessionIssuer({ store: sessions, credentials, policy, clock })
  const writer = createPasswordWriter({ users, tokens, twoFactor, resets, issuer, clock })
  const secondFactor = createSecondFactor(twoFactor, secrets, clock)
  const challenges = createLoginChallenges({ database, store: twoFactor, users, secondFactor, lockOut, issuer, clock })
  const reauthentication = createReauthentication({ database, users, hasher, secondFactor, lockOut })

  return Object.freeze({
    ...createUsers({ database, store: users, instance: createInstanceStore(database), invitations, hasher, issuer, credentials, clock }),
    ...createSessions({ database, store: sessions, users, hasher, lockOut, issuer, challenges, credentials, clock }),
    ...createPasswords({ database, users, hasher, writer, reauthentication, issuer }),
    ...createPasswordResets({ database, store: resets, users, hasher, writer, lockOut, clock }),
    ...createInvitations({ database, store: invitations, users, hasher, issuer, clock }),
    ...createAlertSettings(createAlertPreferenceStore(database)),
    ...createTokens({ database, store: tokens, uses: createTokenUseStore(database), users, credentials, clock }),
    ...createTwoFactor({ database, store: twoFactor, users, secondFactor, reauthentication, lockOut, issuer })
  })
}
