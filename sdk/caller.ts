import type { Role, Scope } from './access.js'

declare const projectBrand: unique symbol

/** The id of a project that the guard has checked for this caller. Only the kernel makes one. */
export type ProjectId = string & { readonly [projectBrand]: true }

/** The user behind a credential. `role` is the effective one: a token's is the lower of issue and now. */
export interface CallerUser {
  readonly id: string
  readonly email: string
  readonly username: string
  readonly role: Role
}

export interface AnonymousCaller {
  readonly kind: 'anonymous'
}
export interface SessionCaller {
  readonly kind: 'session'
  readonly sessionId: string
  readonly user: CallerUser
  /** The platform asks for a second factor and the user has none: only what leads to one is open. */
  readonly mustEnroll?: true
}
export interface TokenCaller {
  readonly kind: 'token'
  readonly tokenId: string
  readonly tokenName: string
  readonly scope: Scope
  /** The projects the token is pinned to; null when it is not pinned. An empty list reaches nothing. */
  readonly pins: readonly string[] | null
  readonly user: CallerUser
}
export type SignedInCaller = SessionCaller | TokenCaller
export type Caller = AnonymousCaller | SignedInCaller

/**
 * What rows a caller may see in a list.
 *
 * `userId` is null for an admin (every project); otherwise own and shared projects only, and those the user is
 * a member of.
 * `pins` narrows further; null when pins play no part.
 * `callerId` is whose reach it is, an admin's too; null for an anonymous caller, who reaches nothing.
 */
export interface Reach {
  readonly callerId: string | null
  readonly userId: string | null
  readonly pins: readonly string[] | null
}
