import type { IncomingHttpHeaders } from 'node:http'
import type { SignedInCaller, TokenCaller } from './caller.js'
import type { Operation } from './kernel.js'
import type { Tx } from './tx.js'

/** The platform's cookies. Proxies take them out of what they forward. */
export const cookieNames = {
  session: 'token',
  refresh: 'refresh_token',
  csrf: 'csrf_token',
  device: 'known_device'
} as const

/** How the platform's secrets begin: what one is for can be seen, so that proxies and logs can take it out. */
export const secretPrefixes = {
  session: 'busbar_ses_',
  refresh: 'busbar_ref_',
  token: 'busbar_pat_'
} as const
/** How the cookie begins that tells a browser which has signed in before: no secret of a session. */
export const knownDevicePrefix = 'busbar_dev_'
export type SecretKind = keyof typeof secretPrefixes

/** Who a credential stands for, and how long. */
export interface FoundCredential {
  /** Frozen: every request with this credential is given the same object. */
  readonly caller: SignedInCaller
  /** Null when it does not expire. */
  readonly expiresAt: Date | null
  /** When its use was last written down; null when never. */
  readonly lastUsedAt: Date | null
}

/** Where the guard finds the credentials that requests show. It asks once and remembers the answer. */
export interface CredentialSource {
  /** Undefined when no credential has this digest. Throws when the look-up fails. */
  find(kind: 'session' | 'token', digest: string): Promise<FoundCredential | undefined>
  /**
   * The same credential as it is now, for what was opened with it and stays open. Undefined when it has ended.
   * A session expires here when it can no longer be refreshed: its secrets change, and it goes on.
   */
  current(caller: SignedInCaller): Promise<FoundCredential | undefined>
  /**
   * Told about a use at `at`, at most every few minutes. Another process may have told of one meanwhile:
   * a use later than `recent` need not be written again.
   */
  used?(caller: SignedInCaller, at: Date, recent: Date): Promise<void>
  /**
   * Told of every request that a token was let in with, and of the project it concerns. On the hot path: it
   * returns at once and never throws.
   */
  admitted?(caller: TokenCaller, operation: Operation, projectId: string | undefined): void
}

/** The guard's side of credentials, for the plugin that keeps them. */
export interface Credentials {
  /** A new random secret. The client gets `value`, and only `digest` is kept. */
  issue(kind: SecretKind): { readonly value: string; readonly digest: string }
  /** The digest of the refresh cookie; undefined when there is none. 403 without the CSRF token. */
  refreshDigest(headers: IncomingHttpHeaders): string | undefined
  /**
   * Makes every process forget the credentials of a user or session, a token, the tokens pinned to a project,
   * or all: this one at once, or right after `tx` has committed, and the others a moment later. `role` is those of a
   * user who has got another role, as opposed to one who has signed out or gone: sockets on `/api/ws` stay open.
   */
  forget(kind: 'user' | 'role' | 'session' | 'token' | 'project' | 'all', id: string, tx?: Tx): Promise<void>
}
