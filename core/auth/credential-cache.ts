import type { SignedInCaller } from 'busbar/sdk'
import { LookupCache } from '../cache/lookup-cache.js'
import type { Authentication } from './authentication.js'

/** A credential that was found in the database. */
export interface KnownCredential {
  readonly caller: SignedInCaller
  /** The answer for this credential, made once: the hot path allocates nothing. */
  readonly answer: Authentication
  readonly expiresAtMs: number
  /** When its use was last passed on. */
  usedAtMs: number
}

/** Which credentials no longer are what they were. */
export type Revoked =
  | { readonly kind: 'user' | 'role' | 'session' | 'token' | 'project'; readonly id: string }
  | { readonly kind: 'all' }

/** Credentials by the digest of their value. */
export class CredentialCache extends LookupCache<KnownCredential> {
  /** Called when credentials are no longer what they were, in whatever process that was decided. */
  readonly watchers = new Set<(revoked: Revoked) => void>()

  drop(revoked: Revoked): void {
    this.forgetWhere(({ caller }) => isRevoked(caller, revoked))
    for (const tell of this.watchers) tell(revoked)
  }
}

export function isRevoked(caller: SignedInCaller, revoked: Revoked): boolean {
  switch (revoked.kind) {
    case 'all':
      return true
    case 'user':
    case 'role':
      return caller.user.id === revoked.id
    case 'session':
      return caller.kind === 'session' && caller.sessionId === revoked.id
    case 'token':
      return caller.kind === 'token' && caller.tokenId === revoked.id
    case 'project':
      return caller.kind === 'token' && caller.pins !== null && caller.pins.includes(revoked.id)
  }
}
