import {
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

const role = oneOf(roles)
const password = text({ max: 1024 })

const fields = {
  id: uuid(),
  email: Type.String(),
  username: Type.String(),
  first_name: Type.String(),
  last_name: Type.String(),
  role,
  created_at: timestamp()
}
export const user = named('User', object({ ...fields, last_active_at: timestamp() }))
export const userAfterRoleChange = named('UserRole', object(fields))

/** `role` is `member` unless given. */
export const createBody = named(
  'CreateUser',
  object({
    email: text({ max: 254 }),
    password,
    role: maybe(role),
    username: maybe(Type.String({ maxLength: 64, pattern: '^[^\\u0000-\\u001f\\u007f]*$' }))
  })
)
export type NewUser = Static<typeof createBody>

/** `role` is `member` unless given. */
export const inviteBody = named('InviteUser', object({ email: text({ max: 254 }), role: maybe(role) }))
const invitationFields = {
  id: uuid(),
  email: Type.String(),
  role,
  invited_by_user_id: uuid(),
  expires_at: timestamp(),
  accepted_at: nullable(timestamp()),
  created_at: timestamp()
}
export const invitation = named('Invitation', object(invitationFields))
/** `link` is for the admin to pass on, where the platform cannot mail it. */
export const createdInvitation = named(
  'CreatedInvitation',
  object({ ...invitationFields, link: maybe(Type.String()) })
)

export const roleBody = named('ChangeUserRole', object({ role }))
/** `current_password` is the acting admin's own. */
export const passwordBody = named('ResetUserPassword', object({ password, current_password: password }))
export const totpResetBody = named(
  'ResetUserTotp',
  object({
    current_password: password,
    code: maybe(text({ max: 64 })),
    method: maybe(text({ max: 32 }))
  })
)
