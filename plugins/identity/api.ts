import type { IncomingHttpHeaders } from 'node:http'
import {
  type AlertPreference,
  type Cookie,
  event,
  type Page,
  publishedTable,
  type Role,
  type Rows,
  type Scope,
  type SessionCaller,
  service,
  type TokenCaller,
  type Tx
} from 'busbar/sdk'

/** What its services refuse, for routes that declare it. */
export {
  locked,
  newPasswordProblems,
  problems as identityProblems,
  proofProblems
} from './problems.js'

/** Where a request came from: lock-out counts by known device or else by address, a session remembers address and user agent. */
export interface Client {
  readonly ip: string
  readonly userAgent: string | undefined
  /** The `Cookie` header: it tells a device that has signed in before. */
  readonly cookies?: string | undefined
}

/** A user, without what proves to be one. `email` is in lower case; names that are not set are empty. */
export interface UserRow {
  readonly id: string
  readonly email: string
  readonly username: string
  readonly first_name: string
  readonly last_name: string
  readonly role: Role
  readonly created_at: Date
  /** When a session was last used, to about five minutes; `created_at` before the first time. */
  readonly last_active_at: Date
}

/**
 * All users. Foreign keys to it are `on delete restrict`, or `cascade` for rows that mean nothing without the user: a
 * user is deleted in one statement, without a teardown.
 */
export const userTable = publishedTable('identity.user', {
  key: 'id',
  columns: {
    id: 'uuid',
    /** In lower case; unique. */
    email: 'text',
    /** Empty where none is set. */
    username: 'text'
  }
})

/** Users and the rules about them. Every method that changes one throws a `Problem` when a rule forbids it. */
export interface Users {
  /** True until the first user exists. */
  isSetupRequired(): Promise<boolean>
  /** True when setting the platform up over the network takes the one-time code. */
  isSetupCodeRequired(): Promise<boolean>
  /** For a request that has not been read: 409 when there is a user already, 403 when set-up is not open to where it comes from. */
  checkSetupRequest(headers: IncomingHttpHeaders): Promise<void>
  /** 403 for a missing or wrong one-time code, where one is required. */
  checkSetupCode(code: string | undefined): Promise<void>
  /** Makes the first user, an admin; 409 when there is one already. Makes no session, and asks for no code. */
  setUp(input: {
    readonly email: string
    readonly password: string
    readonly username?: string
    readonly instanceName?: string
  }): Promise<UserRow>
  /** What was given as the instance's name at setup. */
  instanceName(): Promise<string | undefined>
  findUser(userId: string): Promise<UserRow | undefined>
  /** The ids of those who are admins now. */
  adminIds(tx?: Tx): Promise<readonly string[]>
  /** Oldest first. */
  listUsers(page: Page): Promise<Rows<UserRow>>
  /** 409 when the address is taken. */
  createUser(input: {
    readonly email: string
    readonly password: string
    readonly role: Role
    readonly username?: string
  }): Promise<UserRow>
  /** What is absent stays as it is. */
  updateProfile(
    userId: string,
    changes: { readonly username?: string; readonly firstName?: string; readonly lastName?: string }
  ): Promise<UserRow>
  /** Ends the user's sessions when the role changes; 400 for the last admin, 404 for an unknown user. */
  changeRole(userId: string, role: Role): Promise<UserRow>
  /** 400 for oneself and for the last admin, 409 while the user owns something. */
  deleteUser(userId: string, actingUserId: string): Promise<void>
}

/** The answer to every successful sign-in, as it goes over the wire. */
export interface LoginResult {
  readonly token: string
  readonly refresh_token: string
  /** Seconds until `token` must be refreshed. */
  readonly expires_in: number
  readonly user: {
    readonly id: string
    readonly email: string
    readonly role: Role
    readonly username: string
    readonly first_name: string
    readonly last_name: string
  }
}

/** What is asked of a user with a second factor, instead of a `LoginResult`. */
export interface LoginChallenge {
  readonly challenge: string
  readonly methods: readonly SecondFactorMethod[]
  /** Seconds. */
  readonly expires_in: number
}

/** A session that was made or renewed: the body of the answer and the cookies that carry it. */
export interface SessionGrant {
  readonly sessionId: string
  readonly result: LoginResult
  readonly cookies: readonly Cookie[]
}

export type LoginOutcome =
  | { readonly kind: 'signedIn'; readonly grant: SessionGrant }
  | { readonly kind: 'challenged'; readonly challenge: LoginChallenge }

/** One browser that is signed in. */
export interface SessionRow {
  readonly id: string
  readonly ip_address: string
  readonly user_agent: string
  readonly created_at: Date
  readonly last_used_at: Date
  /** When it ends unless it is refreshed before. */
  readonly expires_at: Date
}

export interface Sessions {
  /**
   * 401 for a wrong address or password, in the same time and words; 429 with `retry_after` after five
   * failures for this account within fifteen minutes from this address, or from this device when it has signed in before.
   */
  login(input: { readonly email: string; readonly password: string }, client: Client): Promise<LoginOutcome>
  /** The second step of a login with a second factor. */
  verifyLogin(
    input: { readonly challenge: string; readonly code: string; readonly method?: string },
    client: Client
  ): Promise<SessionGrant>
  /**
   * Spends the refresh cookie of `headers` for a new session secret. Checks the CSRF token first (403).
   * Undefined when the refresh secret is unknown, expired or already spent; spent ones end their session.
   */
  refresh(headers: IncomingHttpHeaders, client: Client): Promise<SessionGrant | undefined>
  /** Newest first, those that could still be refreshed. */
  listSessions(userId: string): Promise<readonly SessionRow[]>
  /** False when the user has no such session. */
  endSession(userId: string, sessionId: string): Promise<boolean>
  /** The cookies that take a session out of the browser. */
  signedOutCookies(): Promise<readonly Cookie[]>
}

export interface Passwords {
  /** Ends the other sessions and renews this one; 401 for a wrong current password, which counts towards lock-out. */
  changePassword(
    caller: SessionCaller,
    input: { readonly currentPassword: string; readonly newPassword: string },
    client: Client
  ): Promise<SessionGrant>
  /** An admin sets another's password: all sessions and tokens of that user end. `currentPassword` is the admin's own. */
  resetPassword(
    caller: SessionCaller,
    userId: string,
    input: { readonly currentPassword: string; readonly newPassword: string },
    client: Client
  ): Promise<void>
}

/** Passwords that were forgotten. The link is the caller's to make and to send. */
export interface PasswordResets {
  /**
   * A new secret for a reset link; links before it stop working. Undefined when no account has this address, or
   * they were given three within the hour. For a job, which takes as long as it takes: a request that waited
   * for it would tell who has an account.
   */
  openPasswordReset(
    email: string,
    tx: Tx
  ): Promise<{ readonly email: string; readonly secret: string; readonly expiresAt: Date } | undefined>
  /**
   * Spends the secret of a link: all sessions and tokens of the user end. 400 when it is unknown, was used or
   * has expired. Returns the user's id; makes no session.
   */
  completePasswordReset(
    input: { readonly secret: string; readonly newPassword: string },
    client: Client
  ): Promise<string>
}

/** An invitation of an admin to become a user. */
export interface InvitationRow {
  readonly id: string
  readonly email: string
  readonly role: Role
  readonly invited_by_user_id: string
  readonly expires_at: Date
  readonly accepted_at: Date | null
  readonly created_at: Date
}

/** Invitations live for seven days, and no longer than their maker is an admin. */
export interface Invitations {
  /**
   * `secret` is for the link; it is shown once. One that waits for the same address is replaced. 409 when the
   * address belongs to a user.
   */
  invite(
    caller: SessionCaller,
    input: { readonly email: string; readonly role: Role },
    tx: Tx
  ): Promise<{ readonly row: InvitationRow; readonly secret: string }>
  /** Newest first, those that can still be accepted. */
  listInvitations(page: Page): Promise<Rows<InvitationRow>>
  /** 404 when none waits under this id. */
  revokeInvitation(invitationId: string): Promise<void>
  /** 404 for an unknown secret, 410 when it was accepted or has expired. */
  findInvitation(secret: string): Promise<{ readonly email: string; readonly role: Role }>
  /** Makes the user and signs them in. The same errors, and 409 when the address has been taken meanwhile. */
  acceptInvitation(
    input: {
      readonly secret: string
      readonly password: string
      readonly username?: string
      readonly firstName?: string
      readonly lastName?: string
    },
    client: Client
  ): Promise<SessionGrant>
}

/** The alerts that a user gets, in wire names. */
export interface AlertPreferences extends Readonly<Record<AlertPreference, boolean>> {
  /** 1 to 100. */
  readonly quota_threshold_percent: number
}
export interface AlertSettings {
  /** The defaults (everything, at 80 percent) for a user who never changed them. */
  alertPreferences(userId: string): Promise<AlertPreferences>
  /** What is absent stays as it is; 400 for a percentage out of range. */
  updateAlertPreferences(userId: string, changes: Partial<AlertPreferences>): Promise<AlertPreferences>
  /** Those of the users who have not declined this alert, in one statement and in no order. */
  wanting(preference: AlertPreference, userIds: readonly string[], tx?: Tx): Promise<readonly string[]>
}

/** A personal access token, without its value. */
export interface AccessTokenRow {
  readonly id: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly role_at_issue: Role
  readonly pinned: boolean
  readonly project_ids: readonly string[]
  readonly expires_at: Date | null
  readonly last_used_at: Date | null
  readonly created_at: Date
}
export interface NewAccessToken {
  readonly name: string
  readonly scope: Scope
  readonly expiresInDays: number | null
  /** Not empty: the token is pinned to these for ever. Projects the caller has checked to be reachable. */
  readonly projectIds: readonly string[]
}

/** When a token was last let in to an operation, to about five minutes. */
export interface TokenUse {
  /** `GET /api/projects/{projectId}` */
  readonly operation: string
  /** Null where no project is concerned. */
  readonly project_id: string | null
  readonly last_used_at: Date
}
export interface InspectedToken {
  readonly row: AccessTokenRow
  /** With the effective role. */
  readonly caller: TokenCaller
  readonly isExpired: boolean
  readonly uses: readonly TokenUse[]
}

export interface AccessTokens {
  /** Newest first. */
  listTokens(userId: string, page: Page): Promise<Rows<AccessTokenRow>>
  /** `value` is what the client sends; it is shown once and cannot be recovered. */
  createToken(
    caller: SessionCaller,
    token: NewAccessToken
  ): Promise<{ readonly row: AccessTokenRow; readonly value: string }>
  /** What the guard knows of a token, and what it was used for. Undefined when the user has no such token. */
  inspectToken(userId: string, tokenId: string): Promise<InspectedToken | undefined>
  /** False when the user has no such token. It stops working at once. */
  deleteToken(userId: string, tokenId: string): Promise<boolean>
  /** For the owner of projects: a deleted project leaves every pin set, which never widens a token. */
  removePins(projectId: string, tx: Tx): Promise<void>
}

export const secondFactorMethods = ['totp', 'recovery_code'] as const
export type SecondFactorMethod = (typeof secondFactorMethods)[number]

export interface TotpStatus {
  readonly enabled: boolean
  readonly enabled_at: Date | null
  readonly recovery_codes_remaining: number
}

/** Two-factor sign-in with time-based codes. A wrong password or code is 401 and counts towards lock-out. */
export interface TwoFactor {
  totpStatus(userId: string): Promise<TotpStatus>
  /** Stores a new secret that counts only after `verifyTotp`; 409 while a factor is on. `qr_code` is `uri` as a PNG, in a data URL. */
  enrollTotp(
    caller: SessionCaller,
    password: string,
    client: Client
  ): Promise<{ readonly secret: string; readonly uri: string; readonly qr_code: string }>
  /** Turns the factor on: the other sessions end, this one is renewed. 409 when nothing was enrolled. */
  verifyTotp(
    caller: SessionCaller,
    code: string,
    client: Client
  ): Promise<{ readonly recoveryCodes: readonly string[]; readonly grant: SessionGrant }>
  disableTotp(caller: SessionCaller, proof: TwoFactorProof, client: Client): Promise<SessionGrant>
  /** Earlier codes become invalid. */
  regenerateRecoveryCodes(
    caller: SessionCaller,
    proof: TwoFactorProof,
    client: Client
  ): Promise<readonly string[]>
  /** An admin takes another's factor away and ends that user's sessions; 409 when there is none. */
  resetTotp(
    caller: SessionCaller,
    userId: string,
    proof: Partial<TwoFactorProof>,
    client: Client
  ): Promise<void>
}
export interface TwoFactorProof {
  readonly password: string
  readonly code: string
  /** `totp` unless given. */
  readonly method?: string
}

/**
 * Who may sign in and how: users, sessions, passwords, tokens and second factors, with all rules about
 * them. Rows come in wire names. The table `identity.user (id)` may be referenced by foreign keys
 * (RESTRICT, or CASCADE for what is nothing without the user), and joined for reading: `id, email, username, first_name, last_name, role`.
 */
export interface Identity
  extends Users,
    Sessions,
    Passwords,
    PasswordResets,
    Invitations,
    AccessTokens,
    TwoFactor,
    AlertSettings {}
/** A user has signed in by a device that has not signed in to the account before, at an address where they have no session. Not the first time that they sign in. */
export const newSignIn = event<{
  readonly userId: string
  readonly address: string
  /** What the browser or program calls itself. */
  readonly client: string
}>('identity.newSignIn')

/** An invitation was accepted: there is a user by it. */
export const invitationAccepted = event<{
  readonly userId: string
  readonly email: string
  readonly role: Role
  /** Who had made it. */
  readonly invitedByUserId: string
}>('identity.invitationAccepted')

/** For built-in plugins only. */
export const identity = service<Identity>('identity.accounts', { builtInOnly: true })
