import {
  described,
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

const role = described(
  oneOf(roles),
  'An `admin` manages users, plugins and the platform and owns every project; a `member` works in own and shared projects.'
)
const optionalRole = described(
  maybe(oneOf(roles)),
  'An `admin` manages users, plugins and the platform; a `member` works in own and shared projects. `member` unless given.'
)
const newEmail = described(
  text({ max: 254 }),
  'The address to sign in with. It is kept in lower case, and only one user may have it.'
)
const password = text({ max: 1024 })
const newPassword = described(password, 'The new password: 8 characters to 1024 bytes, of any kind.')
const ownPassword = described(password, 'The password of the acting admin.')

const fields = {
  id: described(uuid(), 'What the user is called in paths and other bodies. Never changes.'),
  email: described(Type.String(), 'The address that the user signs in with, in lower case.'),
  username: described(Type.String(), 'What the user is called; empty where none is set.'),
  first_name: described(Type.String(), 'Empty where none is set.'),
  last_name: described(Type.String(), 'Empty where none is set.'),
  role,
  created_at: described(timestamp(), 'When the user was made.')
}
export const user = named(
  'User',
  object({
    ...fields,
    last_active_at: described(
      timestamp(),
      'When a session of the user was last used, to about five minutes; `created_at` before the first time.'
    )
  }),
  { description: 'Who may sign in.' }
)
export const userAfterRoleChange = named('UserRole', object(fields), {
  description: 'A user after a change of the role.'
})

/** `role` is `member` unless given. */
export const createBody = named(
  'CreateUser',
  object({
    email: newEmail,
    password: newPassword,
    role: optionalRole,
    username: described(
      maybe(Type.String({ maxLength: 64, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })),
      'What to call the user, without control characters; empty unless given. Users change it themselves.'
    )
  }),
  {
    description: 'A user that is to be made.',
    examples: [{ email: 'ada@example.com', password: 'a sentence that is long', username: 'ada' }]
  }
)
export type NewUser = Static<typeof createBody>

/** `role` is `member` unless given. */
export const inviteBody = named(
  'InviteUser',
  object({
    email: described(text({ max: 254 }), 'Where to send the link, and the address to sign in with later.'),
    role: optionalRole
  }),
  { description: 'Who is to be invited.', examples: [{ email: 'ada@example.com', role: 'member' }] }
)
const invitationFields = {
  id: described(
    uuid(),
    'What the invitation is called in paths. It is no secret, and not the token of its link.'
  ),
  email: described(Type.String(), 'The address that was invited, in lower case.'),
  role: described(oneOf(roles), 'The role that the user will have.'),
  invited_by_user_id: described(
    uuid(),
    'The admin who invited. The link works as long as that user is an admin.'
  ),
  expires_at: described(timestamp(), 'Until when the link works: seven days after it was made.'),
  accepted_at: described(nullable(timestamp()), 'Null: invitations that have been accepted are not listed.'),
  created_at: described(timestamp(), 'When it was made.')
}
export const invitation = named('Invitation', object(invitationFields), {
  description: 'An invitation that can still be accepted.'
})
/** `link` is for the admin to pass on, where the platform cannot mail it. */
export const createdInvitation = named(
  'CreatedInvitation',
  object({
    ...invitationFields,
    link: described(
      maybe(Type.String()),
      'The link to pass on, this once, or its path where the platform does not know its own address. Left out where it was mailed.'
    )
  }),
  { description: 'An invitation that has just been made.' }
)

export const roleBody = named('ChangeUserRole', object({ role }), {
  description: 'The role that the user is to have.',
  examples: [{ role: 'admin' }]
})
/** `current_password` is the acting admin's own. */
export const passwordBody = named(
  'ResetUserPassword',
  object({ password: newPassword, current_password: ownPassword }),
  {
    description: 'A new password of the user, with the proof of the admin.',
    examples: [{ password: 'a sentence that is long', current_password: 'my own long sentence' }]
  }
)
export const totpResetBody = named(
  'ResetUserTotp',
  object({
    current_password: ownPassword,
    code: described(
      maybe(text({ max: 64 })),
      'A code of the acting admin; required when that user has a second factor.'
    ),
    method: described(
      maybe(text({ max: 32 })),
      'What `code` is: `totp` for one of the app, `recovery_code` for a recovery code. `totp` unless given.'
    )
  }),
  {
    description: 'The proof of the admin.',
    examples: [{ current_password: 'my own long sentence', code: '123456' }]
  }
)

export const userParams = { userId: described(uuid(), 'The `id` of the user.') }
export const invitationParams = { invitationId: described(uuid(), 'The `id` of the invitation.') }
