import { secondFactorMethods } from 'busbar/api/identity'
import {
  described,
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
const signInEmail = described(email, 'The address of the account, of any case.')
const password = text({ max: 1024 })
const ownPassword = described(password, 'The password of the user who asks.')
const newPassword = described(password, 'The new password: 8 characters to 1024 bytes, of any kind.')
const code = described(
  text({ max: 64 }),
  'Six digits of the authenticator app, each good once, or a recovery code, of which case and hyphens do not count.'
)
/** Which of `totp` and `recovery_code`; the identity says so when it is neither. */
const method = described(
  maybe(text({ max: 32 })),
  'What `code` is: `totp` for one of the app, `recovery_code` for a recovery code. `totp` unless given.'
)
/** Something to read: no control characters. */
const plain = (limits: { min?: number; max: number }) =>
  Type.String({ minLength: limits.min ?? 0, maxLength: limits.max, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
const personName = plain({ max: 64 })
const username = described(
  maybe(personName),
  'What to call the user, without control characters; empty unless given.'
)
const firstName = described(maybe(personName), 'The first name; empty unless given.')
const lastName = described(maybe(personName), 'The last name; empty unless given.')
const role = described(
  oneOf(roles),
  'An `admin` manages users, plugins and the platform; a `member` works in own and shared projects.'
)
const userFields = {
  id: described(uuid(), 'What the user is called in paths and other bodies.'),
  email: described(Type.String(), 'The address that the user signs in with, in lower case.'),
  role,
  username: described(Type.String(), 'What the user is called; empty where none is set.')
}
const nameFields = {
  first_name: described(Type.String(), 'Empty where none is set.'),
  last_name: described(Type.String(), 'Empty where none is set.')
}

export const setupBody = named(
  'SetUp',
  object({
    email: described(email, 'The address that the first user signs in with; it is kept in lower case.'),
    password: described(password, 'Their password: 8 characters to 1024 bytes, of any kind.'),
    username,
    instance_name: described(
      maybe(plain({ max: 200 })),
      'What to call the instance, which everybody reads on the sign-in page; empty unless given.'
    ),
    /** The one-time code of the log, where one is asked for. */
    code: described(
      maybe(text({ max: 256 })),
      'The one-time code that the log printed when the platform started, or what `SETUP_CODE` says; required where `code_required` is true.'
    )
  }),
  {
    description: 'The first user, an admin, and the name of the instance.',
    examples: [
      {
        email: 'ada@example.com',
        password: 'a sentence that is long',
        username: 'ada',
        instance_name: 'Our platform',
        code: 'abcde-fghjk-mnpqr-stuvw'
      }
    ]
  }
)
export const setupStatus = named(
  'SetUpStatus',
  object({
    setup_required: described(Type.Boolean(), 'Whether the first user is still to be made.'),
    code_required: described(
      Type.Boolean(),
      'Whether set-up asks for the one-time code, as it does where the network reaches the platform. False once it is set up.'
    )
  }),
  { description: 'Whether the platform is new.' }
)
export const firstUser = named('FirstUser', object(userFields), {
  description: 'The user whom set-up made, an admin.'
})

export const loginBody = named(
  'LogIn',
  object({ email: signInEmail, password: described(password, 'The password of the account.') }),
  {
    description: 'Who signs in.',
    examples: [{ email: 'ada@example.com', password: 'a sentence that is long' }]
  }
)
export const loginVerifyBody = named(
  'VerifyLogin',
  object({
    challenge: described(
      text({ max: 128 }),
      'What the sign-in answered; good for five minutes and five attempts.'
    ),
    code,
    method
  }),
  {
    description: 'The second step of a sign-in.',
    examples: [{ challenge: 'Q0h4c2R2bWx3dGpQbUx4bWJ3c2VkZw', code: '123456', method: 'totp' }]
  }
)

export const loginResult = named(
  'SignedIn',
  object({
    token: described(
      Type.String(),
      'The secret of the session, which the cookie `token` holds too. It works as that cookie alone, not as a bearer token.'
    ),
    refresh_token: described(
      Type.String(),
      'What renews the session, once, as the cookie `refresh_token` with `POST /api/auth/refresh`.'
    ),
    expires_in: described(Type.Integer(), 'Seconds until the session is to be refreshed.'),
    user: described(object({ ...userFields, ...nameFields }), 'Who has signed in.')
  }),
  {
    description:
      'A session. The cookies `token`, `refresh_token` and `csrf_token` are set with it; what changes something also sends the last one as `X-CSRF-Token`.'
  }
)
const loginChallenge = named(
  'LoginChallenge',
  object({
    challenge: described(Type.String(), 'What to send to `POST /api/auth/login/verify` with a code.'),
    methods: described(
      list(oneOf(secondFactorMethods)),
      'Which codes are taken; `recovery_code` only while the user has some left.'
    ),
    expires_in: described(Type.Integer(), 'Seconds until the challenge is void.')
  }),
  { description: 'The password was right, and a code of the second factor is needed. No cookie is set.' }
)
export const loginAnswer = Type.Union([loginResult, loginChallenge])
export type LoginAnswer = Static<typeof loginAnswer>
export const refusal = named(
  'Refusal',
  object({
    error: described(Type.String(), 'A sentence that says what is wrong and what to do.'),
    code: described(Type.String(), 'What a program tells errors apart by.')
  }),
  { description: 'Why a session was not renewed.' }
)

export const profile = named(
  'Profile',
  object({
    ...userFields,
    ...nameFields,
    created_at: described(timestamp(), 'When the user was made.')
  }),
  { description: 'The user whom the credential is of.' }
)
export const profileBody = named(
  'UpdateProfile',
  object({
    username: described(
      maybe(plain({ min: 1, max: 64 })),
      'What to call the user, 1 to 64 characters without control characters. Several users may have the same. Left out, it stays.'
    ),
    first_name: described(maybe(personName), 'The first name; empty for none. Left out, it stays.'),
    last_name: described(maybe(personName), 'The last name; empty for none. Left out, it stays.')
  }),
  {
    description: 'What is to change of the own profile. The address cannot be changed.',
    examples: [{ username: 'ada', first_name: 'Ada' }]
  }
)
export type ProfileChanges = Static<typeof profileBody>

export const forgotBody = named('ForgotPassword', object({ email: signInEmail }), {
  description: 'Whose password is forgotten.',
  examples: [{ email: 'ada@example.com' }]
})
const linkSecret = text({ max: 128 })
export const resetBody = named(
  'ResetPassword',
  object({
    token: described(linkSecret, 'What the mailed link has as `token`.'),
    new_password: newPassword
  }),
  {
    description: 'A new password, with the token of the mailed link.',
    examples: [{ token: '3f1c9a527d5e4b1e8a640f3b1c9d1100', new_password: 'a sentence that is long' }]
  }
)

export const invitationQuery = object({
  token: described(linkSecret, 'What the link of the invitation has as `token`.')
})
export const invitation = named(
  'InvitationOffer',
  object({
    email: described(Type.String(), 'The address that was invited, which the user will sign in with.'),
    role
  }),
  { description: 'What an invitation offers.' }
)
export const acceptBody = named(
  'AcceptInvitation',
  object({
    token: described(linkSecret, 'What the link of the invitation has as `token`.'),
    password: newPassword,
    username,
    first_name: firstName,
    last_name: lastName
  }),
  {
    description: 'The user who accepts.',
    examples: [
      { token: '3f1c9a527d5e4b1e8a640f3b1c9d1100', password: 'a sentence that is long', username: 'ada' }
    ]
  }
)
export type Acceptance = Static<typeof acceptBody>

const alertFields = object({
  deploy_failures: described(Type.Boolean(), 'Whether to be told when a deployment fails; true at first.'),
  deploy_success: described(Type.Boolean(), 'Whether to be told when a deployment succeeds; true at first.'),
  build_failures: described(Type.Boolean(), 'Whether to be told when a build fails; true at first.'),
  quota_threshold: described(
    Type.Boolean(),
    'Whether to be told when a quota is used up to the percentage below; true at first.'
  ),
  quota_threshold_percent: described(Type.Integer(), 'That percentage, 1 to 100; 80 at first.')
})
export const alertPreferences = named('AlertPreferences', alertFields, {
  description: 'What a user wants to be told of.'
})
/** A percentage out of range gets a sentence of its own. */
export const alertPreferencesBody = named('UpdateAlertPreferences', Type.Partial(alertFields), {
  description: 'What is to change; what is left out stays.',
  examples: [{ deploy_success: false, quota_threshold_percent: 90 }]
})

export const passwordBody = named(
  'ChangePassword',
  object({ current_password: ownPassword, new_password: newPassword }),
  {
    description: 'A new password, with the proof of the present one.',
    examples: [{ current_password: 'a sentence that is long', new_password: 'another long sentence' }]
  }
)

export const session = named(
  'Session',
  object({
    id: described(uuid(), 'What the session is called in paths. It is no secret.'),
    /** Whether this is the session that asks. */
    current: described(Type.Boolean(), 'Whether it is the session that asks.'),
    ip_address: described(Type.String(), 'The address from which the user signed in.'),
    user_agent: described(
      Type.String(),
      'What the browser or program called itself then, 512 characters at most; empty where it did not.'
    ),
    created_at: described(timestamp(), 'When the user signed in.'),
    last_used_at: described(timestamp(), 'When it was last used, to about five minutes.'),
    expires_at: described(timestamp(), 'Until when it can be refreshed.')
  }),
  { description: 'A place where the user is signed in.' }
)
export const sessionParams = { sessionId: described(uuid(), 'The `id` of one of your own sessions.') }

export const totpStatus = named(
  'TotpStatus',
  object({
    enabled: described(Type.Boolean(), 'Whether a sign-in asks for a code.'),
    enabled_at: described(nullable(timestamp()), 'Since when; null while it is off.'),
    recovery_codes_remaining: described(
      Type.Integer(),
      'How many recovery codes are left; 0 while it is off.'
    )
  }),
  { description: 'Whether the user has a second factor.' }
)
export const enrollBody = named('EnrollTotp', object({ password: ownPassword }), {
  description: 'The proof of the user.',
  examples: [{ password: 'a sentence that is long' }]
})
export const enrollment = named(
  'TotpEnrollment',
  object({
    secret: described(Type.String(), 'The secret in base32, for an app into which it is typed.'),
    uri: described(Type.String(), 'The same as an `otpauth://` address, for an app on the same machine.'),
    qr_code: described(Type.String(), 'That address as a QR code: a `data:` URL of an image.')
  }),
  { description: 'What an authenticator app is given.' }
)
export const verifyEnrollmentBody = named(
  'VerifyTotpEnrollment',
  object({ code: described(text({ max: 64 }), 'Six digits that the app shows now.') }),
  { description: 'The proof that the app has the secret.', examples: [{ code: '123456' }] }
)
export const ownProofBody = named('ProveTotp', object({ password: ownPassword, code, method }), {
  description: 'The proof of the user, with a code of the second factor.',
  examples: [{ password: 'a sentence that is long', code: '123456' }]
})
const renewedSession = described(
  nullable(loginResult),
  'This session, renewed; its former secrets are void. Null where it could not be: sign in again.'
)
const codes = described(
  list(Type.String()),
  'Ten codes, each good once in the place of one of the app. They are shown this once.'
)
export const enrollmentVerified = named(
  'TotpEnabled',
  object({ recovery_codes: codes, session: renewedSession }),
  { description: 'The second factor is on.' }
)
export const totpDisabled = named(
  'TotpDisabled',
  object({ status: described(Type.String(), 'What has been done: `disabled`.'), session: renewedSession }),
  { description: 'The second factor is off.' }
)
export const newRecoveryCodes = named('RecoveryCodes', object({ recovery_codes: codes }), {
  description: 'New recovery codes.'
})
