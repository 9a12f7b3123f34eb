import {
  described,
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
import { ownProjectRoles } from './api.js'

/** Something to read: not blank, no control characters. */
const name = described(
  Type.String({
    minLength: 1,
    maxLength: 100,
    pattern: '^[^\\S\\u0000-\\u001f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$'
  }),
  'What people call the project: 1 to 100 characters, not blank, without control characters. Need not be the only one of its name.'
)

/** Part of container, image and network names, so it is as narrow as those. */
const slug = described(
  Type.String({ minLength: 1, maxLength: 40, pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' }),
  'What the names of containers, networks and hosts of the project begin with: `a-z`, `0-9` and inner hyphens, 40 characters at most. The only one of the platform, and never changed.'
)

const fields = {
  id: described(uuid(), 'What the project is called in paths and other bodies. Never changes.'),
  name: described(Type.String(), 'What people call the project.'),
  slug: described(
    Type.String(),
    'What the names of its containers, networks and hosts begin with. Never changes.'
  ),
  user_id: described(uuid(), 'The user who owns the project.'),
  server_id: described(nullable(uuid()), 'Always null: the platform runs on one machine.'),
  shared: described(Type.Boolean(), 'Whether every user of the platform may work in it, as an editor.'),
  my_role: described(
    oneOf(ownProjectRoles),
    'What the caller may do in it: a `viewer` reads, an `editor` works in it, the `owner` also deletes and shares it. An `admin` who does not own it may do all that the owner may, and transfer it.'
  ),
  created_at: described(timestamp(), 'When it was made.'),
  updated_at: described(
    timestamp(),
    'When the project itself was changed last; what lies in it does not count.'
  )
}

export const project = named('Project', object(fields), {
  description: 'What applications lie in: who owns it, and who may see it.'
})
export type ProjectRow = Static<typeof project>

/** `last_deployed_at` is left out until something in the project has been deployed. */
export const projectListItem = named(
  'ProjectListItem',
  object({
    ...fields,
    last_deployed_at: described(
      maybe(timestamp()),
      'When something in it was last deployed with success; left out before the first time.'
    )
  }),
  { description: 'A project in the list of all.' }
)
export type ProjectListRow = Static<typeof projectListItem>

export const createBody = named('CreateProject', object({ name, slug }), {
  description: 'A project that is to be made; the caller owns it.',
  examples: [{ name: 'Shop', slug: 'shop' }]
})
export const updateBody = named('UpdateProject', object({ name: maybe(name) }), {
  description: 'What is to change of a project. What is left out stays.',
  examples: [{ name: 'Shop (Europe)' }]
})
export const sharingBody = named(
  'ProjectSharing',
  object({
    shared: described(
      Type.Boolean(),
      'True lets every user of the platform work in the project, as an editor; false leaves it to its owner, its members and admins.'
    )
  }),
  { description: 'Whom the project is open to.', examples: [{ shared: true }] }
)
export const transferBody = named(
  'TransferProject',
  object({ user_id: described(uuid(), 'The `id` of the user who is to own the project.') }),
  {
    description: 'Who is to own the project.',
    examples: [{ user_id: '7f3b1a52-9c0e-4d6f-8a21-5e4c3b2a1f00' }]
  }
)

const memberRoles = ['viewer', 'editor'] as const
export type MemberRole = (typeof memberRoles)[number]

/** A user with a role of their own in a project; the owner is since the project was made. */
export const member = named(
  'ProjectMember',
  object({
    user_id: described(uuid(), 'The `id` of the user.'),
    email: described(Type.String(), 'The address that the user signs in with, in lower case.'),
    username: described(Type.String(), 'What the user is called; empty where none is set.'),
    role: described(
      oneOf(projectRoles),
      'What the user may do in the project: a `viewer` reads everything but secrets, an `editor` works in it, the `owner` also deletes and shares it.'
    ),
    created_at: described(
      timestamp(),
      'When the user became a member; of the owner, when the project was made.'
    )
  }),
  { description: 'A user with a role of their own in a project.' }
)
export type MemberRow = Static<typeof member>
export const memberBody = named(
  'SetProjectMember',
  object({
    email: described(
      text({ max: 254 }),
      'The address that the user signs in with, of any case. It must be one of a user who is there already: admins invite others.'
    ),
    role: described(
      oneOf(memberRoles),
      'What the user may do: a `viewer` reads everything but secrets, an `editor` works in the project. A member who has a role already gets this one.'
    )
  }),
  {
    description: 'Who is to be a member, and as what.',
    examples: [{ email: 'ada@example.com', role: 'editor' }]
  }
)

export const memberParams = {
  userId: described(
    uuid(),
    'The `id` of the user who is to leave the project, as `user_id` of the members has it.'
  )
}

export const deletedAnswer = statusResponse
