import {
  maybe,
  named,
  nullable,
  object,
  oneOf,
  projectRoles,
  type Static,
  statusResponse,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

/** Something to read: not blank, no control characters. */
const name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\S\\u0000-\\u001f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$'
})

/** Part of container, image and network names, so it is as narrow as those. */
const slug = Type.String({ minLength: 1, maxLength: 40, pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' })

/** `my_role` is what the caller may do here: admins all that the owner may. */
const fields = {
  id: uuid(),
  name: Type.String(),
  slug: Type.String(),
  user_id: uuid(),
  server_id: nullable(uuid()),
  shared: Type.Boolean(),
  my_role: oneOf(projectRoles),
  created_at: timestamp(),
  updated_at: timestamp()
}

export const project = named('Project', object(fields))
export type ProjectRow = Static<typeof project>

/** `last_deployed_at` is left out until something in the project has been deployed. */
export const projectListItem = named(
  'ProjectListItem',
  object({ ...fields, last_deployed_at: maybe(timestamp()) })
)
export type ProjectListRow = Static<typeof projectListItem>

export const createBody = named('CreateProject', object({ name, slug }))
export const updateBody = named('UpdateProject', object({ name: maybe(name) }))
export const sharingBody = named('ProjectSharing', object({ shared: Type.Boolean() }))
export const transferBody = named('TransferProject', object({ user_id: uuid() }))

const memberRoles = ['viewer', 'editor'] as const
export type MemberRole = (typeof memberRoles)[number]

/** A user with a role of their own in a project; the owner is since the project was made. */
export const member = named(
  'ProjectMember',
  object({
    user_id: uuid(),
    email: Type.String(),
    username: Type.String(),
    role: oneOf(projectRoles),
    created_at: timestamp()
  })
)
export type MemberRow = Static<typeof member>
export const memberBody = named(
  'SetProjectMember',
  object({ email: text({ max: 254 }), role: oneOf(memberRoles) })
)

export const deletedAnswer = statusResponse
