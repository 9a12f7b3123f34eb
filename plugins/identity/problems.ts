import { Problem, type ProblemKind, problemTable } from 'busbar/sdk'

export const problems = problemTable({
  setupCompleted: [409, 'E_AUTH_SETUP_COMPLETED', 'setup already completed'],
  setupCode: [
    403,
    'E_SETUP_CODE',
    'set-up takes a one-time code, as this platform is open to the network',
    'send as "code" what its log printed when it last started, or what SETUP_CODE says'
  ],
  setupNotLocal: [
    403,
    'E_SETUP_HOST',
    'set-up is open to this machine alone',
    "ask for it on http://localhost (or 127.0.0.1) at the platform's own port, or start the platform with SETUP_CODE"
  ],
  wrongCredentials: [401, 'E_AUTH_CREDENTIALS', 'invalid email or password'],
  wrongPassword: [401, 'E_AUTH_PASSWORD', 'current password is incorrect'],
  sessionEnded: [401, 'E_AUTH_SESSION_ENDED', 'this session has ended', 'sign in again'],
  busy: [503, 'E_AUTH_BUSY', 'too many sign-ins at the same time', 'try again in a few seconds'],

  emailInvalid: [400, 'E_USER_EMAIL', 'email is not a valid address', { field: 'email' }],
  emailTaken: [409, 'E_USER_EMAIL_TAKEN', 'a user with the email {email} already exists'],
  passwordShort: [400, 'E_USER_PASSWORD', 'password must have at least {min} characters'],
  passwordLong: [400, 'E_USER_PASSWORD', 'password must have at most {max} bytes'],
  userNotFound: [404, 'E_USER_NOT_FOUND', 'user not found'],
  ownAccount: [400, 'E_USER_SELF', 'you cannot delete your own account'],
  lastAdminDemoted: [
    400,
    'E_USER_LAST_ADMIN',
    'the last admin cannot be demoted',
    { field: 'role', remedy: 'make another user an admin first' }
  ],
  lastAdminDeleted: [
    400,
    'E_USER_LAST_ADMIN',
    'the last admin cannot be deleted',
    'make another user an admin first'
  ],
  userOwns: [409, 'E_USER_OWNS_PROJECTS', 'this user still owns projects', 'transfer or delete them first'],

  resetInvalid: [400, 'E_PASSWORD_RESET', 'invalid or expired reset token', { field: 'token' }],
  resetUsed: [400, 'E_PASSWORD_RESET_USED', 'reset token has already been used', { field: 'token' }],
  resetExpired: [400, 'E_PASSWORD_RESET_EXPIRED', 'reset token has expired', { field: 'token' }],

  invitationNotFound: [404, 'E_INVITATION_NOT_FOUND', 'invitation not found'],
  invitationAccepted: [
    410,
    'E_INVITATION_ACCEPTED',
    'this invitation has already been accepted',
    'sign in instead'
  ],
  invitationExpired: [410, 'E_INVITATION_EXPIRED', 'this invitation has expired', 'ask for a new one'],

  quotaPercent: [
    400,
    'E_ALERT_PERCENT',
    'quota_threshold_percent must be between 1 and 100',
    { field: 'quota_threshold_percent' }
  ],

  totpEnabled: [409, 'E_TOTP_ENABLED', 'two-factor authentication is already enabled'],
  totpDisabled: [409, 'E_TOTP_DISABLED', 'two-factor authentication is not enabled'],
  totpNotEnrolled: [409, 'E_TOTP_NOT_ENROLLED', 'no two-factor enrollment is pending', 'enroll first'],
  wrongCode: [401, 'E_TOTP_CODE', 'invalid verification code'],
  codeReused: [401, 'E_TOTP_CODE_REUSED', 'that code has already been used', 'wait for the next one'],
  codeRequired: [
    400,
    'E_TOTP_CODE_REQUIRED',
    'code is required: your account has two-factor authentication',
    { field: 'code' }
  ],
  unknownMethod: [
    400,
    'E_TOTP_METHOD',
    'unsupported verification method',
    { field: 'method', remedy: 'use totp or recovery_code' }
  ],
  challengeExpired: [
    401,
    'E_AUTH_CHALLENGE',
    'this verification challenge has expired or was used',
    'sign in again'
  ]
})

/** Not a rate limit: the body is JSON and says when to come back. */
export const locked: ProblemKind = Object.freeze({
  status: 429,
  code: 'E_AUTH_LOCKED',
  message: 'too many failed attempts: try again in {seconds} seconds, which `retry_after` says too'
})

/** What a new password is refused with. */
export const newPasswordProblems: readonly ProblemKind[] = Object.freeze([
  problems.passwordShort,
  problems.passwordLong,
  problems.busy
])

/** What a user is refused with who is to prove, within a session, who they are. */
export const proofProblems: readonly ProblemKind[] = Object.freeze([
  problems.codeRequired,
  problems.unknownMethod,
  problems.wrongPassword,
  problems.wrongCode,
  problems.codeReused,
  problems.sessionEnded,
  locked,
  problems.busy
])

/** The answer to who is locked out. */
export const lockedOut = (seconds: number): Problem =>
  new Problem(
    locked.status,
    locked.code,
    `too many failed attempts: try again in ${seconds} seconds`,
    { retry_after: seconds },
    { 'retry-after': String(seconds) }
  )
