import { secondFactorMethods } from 'busbar/api/identity'
import {
  list,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  roles,
  type Static,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

const email = text({ max: 254 })
const password = text({ max: 1024 })
const code = text({ max: 64 })
/** Which of `totp` and `recovery_code`; the identity says so when it is neither. */
const method = maybe(text({ max: 32 }))
/** Something to read: no control characters. */
const plain = (limits: { min?: number; max: number }) =>
  Type.String({ minLength: limits.min ?? 0, maxLength: limits.max, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
const personName = plain({ max: 64 })
const role = oneOf(roles)

export const setupBody = named(
  'SetUp',
  object({
    email,
    password,
    username: maybe(personName),
    instance_name: maybe(plain({ max: 200 })),
    /** The one-time code of the log, where one is asked for. */
    code: maybe(text({ max: 256 }))
  })
)
export const setupStatus = named(
  'SetUpStatus',
  object({ setup_required: Type.Boolean(), code_required: Type.Boolean() })
)
export const firstUser = named(
  'FirstUser',
  object({ id: uuid(), email: Type.String(), role, username: Type.String() })
)

export const loginBody = named('LogIn', object({ email, password }))
export const loginVerifyBody = named('VerifyLogin', object({ challenge: text({ max: 128 }), code, method }))

export const loginResult = named(
  'SignedIn',
  object({
    token: Type.String(),
    refresh_token: Type.String(),
    expires_in: Type.Integer(),
    user: object({
      id: uuid(),
      email: Type.String(),
      role,
      username: Type.String(),
      first_name: Type.String(),
      last_name: Type.String()
    })
  })
)
const loginChallenge = named(
  'LoginChallenge',
  object({
    challenge: Type.String(),
    methods: list(oneOf(secondFactorMethods)),
    expires_in: Type.Integer()
  })
)
export const loginAnswer = Type.Union([loginResult, loginChallenge])
export type LoginAnswer = Static<typeof loginAnswer>
export const refusal = named('Refusal', object({ error: Type.String(), code: Type.String() }))

export const profile = named(
  'Profile',
  object({
    id: uuid(),
    username: Type.String(),
    email: Type.String(),
    first_name: Type.String(),
    last_name: Type.String(),
    role,
    created_at: timestamp()
  })
)
export const profileBody = named(
  'UpdateProfile',
  object({
    username: maybe(plain({ min: 1, max: 64 })),
    first_name: maybe(personName),
    last_name: maybe(personName)
  })
)
export type ProfileChanges = Static<typeof profileBody>

export const forgotBody = named('ForgotPassword', object({ email }))
const linkSecret = text({ max: 128 })
export const resetBody = named('ResetPassword', object({ token: linkSecret, new_password: password }))

export const invitationQuery = object({ token: linkSecret })
export const invitation = named('InvitationOffer', object({ email: Type.String(), role }))
export const acceptBody = named(
  'AcceptInvitation',
  object({
    token: linkSecret,
    password,
    username: maybe(personName),
    first_name: maybe(personName),
    last_name: maybe(personName)
  })
)
export type Acceptance = Static<typeof acceptBody>

export const alertPreferences = named(
  'AlertPreferences',
  object({
    deploy_failures: Type.Boolean(),
    deploy_success: Type.Boolean(),
    build_failures: Type.Boolean(),
    quota_threshold: Type.Boolean(),
    quota_threshold_percent: Type.Integer()
  })
)
/** A percentage out of range gets a sentence of its own. */
export const alertPreferencesBody = named('UpdateAlertPreferences', Type.Partial(alertPreferences))

export const passwordBody = named(
  'ChangePassword',
  object({ current_password: password, new_password: password })
)

const session = named(
  'Session',
  object({
    id: uuid(),
    /** Whether this is the session that asks. */
    current: Type.Boolean(),
    ip_address: Type.String(),
    user_agent: Type.String(),
    created_at: timestamp(),
    last_used_at: timestamp(),
    expires_at: timestamp()
  })
)
export const sessions = list(session)

export const totpStatus = named(
  'TotpStatus',
  object({
    enabled: Type.Boolean(),
    enabled_at: nullable(timestamp()),
    recovery_codes_remaining: Type.Integer()
  })
)
export const enrollBody = named('EnrollTotp', object({ password }))
export const enrollment = named(
  'TotpEnrollment',
  object({ secret: Type.String(), uri: Type.String(), qr_code: Type.String() })
)
export const verifyEnrollmentBody = named('VerifyTotpEnrollment', object({ code }))
export const ownProofBody = named('ProveTotp', object({ password, code, method }))
const renewedSession = nullable(loginResult)
const codes = list(Type.String())
export const enrollmentVerified = named(
  'TotpEnabled',
  object({ recovery_codes: codes, session: renewedSession })
)
export const totpDisabled = named('TotpDisabled', object({ status: Type.String(), session: renewedSession }))
export const newRecoveryCodes = named('RecoveryCodes', object({ recovery_codes: codes }))
