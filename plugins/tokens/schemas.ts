import { ownProjectRoles } from 'busbar/api/projects'
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
  scopes,
  Type,
  text,
  timestamp,
  uuid,
  withValues
} from 'busbar/sdk'
import { expiryChoices } from './token-rules.js'

const fields = {
  id: described(uuid(), 'What the token is called in paths. It is no secret.'),
  name: described(Type.String(), 'What its owner calls it.'),
  scopes: described(
    list(oneOf(scopes)),
    'One scope: what the token may do. `metrics` reads measurements, `read` everything but secrets, `deploy` also deploys, starts and stops, `write` also changes and creates. Each has what those before it have.'
  ),
  role_at_issue: described(
    oneOf(roles),
    'The role of its owner when it was made. The token acts with the lower of this one and the role of now.'
  ),
  pinned: described(
    Type.Boolean(),
    'Whether it is limited to the projects in `project_ids`, for ever: without any left it reaches none.'
  ),
  project_ids: described(
    list(uuid()),
    'The projects that a pinned token is limited to; empty for one that is not pinned. A project that is deleted leaves the list.'
  ),
  expires_at: described(
    nullable(timestamp()),
    'From when on it is refused; null for one that does not expire.'
  ),
  created_at: described(timestamp(), 'When it was made.')
}
const lastUsedAt = described(
  nullable(timestamp()),
  'When it was last used, to about five minutes; null before the first time.'
)

export const token = named('Token', object({ ...fields, last_used_at: lastUsedAt }), {
  description: 'A personal access token, without its value.'
})
/** Of what an operation is used: of one project at a time, of all that the token reaches, or of none. */
export const concerns = ['project', 'projects', 'platform'] as const

const reachedProject = object({
  id: described(uuid(), 'The `id` of the project.'),
  name: described(Type.String(), 'What people call it.'),
  slug: described(Type.String(), 'The slug of the project.'),
  role: described(
    oneOf(ownProjectRoles),
    'What the owner of the token may do there, the scope aside; `admin`: all that the owner of the project may.'
  ),
  last_used_at: described(
    nullable(timestamp()),
    'When the token was last used for it, to about five minutes; null before the first time.'
  )
})
const reachedOperation = object({
  method: described(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), 'The HTTP method.'),
  path: described(Type.String(), 'The path, with `{parameters}`.'),
  summary: described(Type.String(), 'What the operation is called.'),
  group: described(Type.String(), 'The heading under which the operation is listed.'),
  concerns: described(
    oneOf(concerns),
    'What one call is about: one `project` that the path names, all `projects` that the token reaches, or the `platform`.'
  ),
  last_used_at: described(
    nullable(timestamp()),
    'When the token last used the operation, to about five minutes; null before the first time.'
  )
})

/** What a token could do now. `role` is the effective one, and that of its owner in each project; times are to about five minutes. */
export const tokenReach = named(
  'TokenReach',
  object({
    ...fields,
    last_used_at: lastUsedAt,
    role: described(
      oneOf(roles),
      'The role that it acts with now: the lower of that at its issue and that of its owner.'
    ),
    projects: described(
      list(named('ReachedProject', reachedProject, { description: 'A project that a token reaches.' })),
      'The projects that it reaches now.'
    ),
    operations: described(
      list(
        named('ReachedOperation', reachedOperation, { description: 'An operation that a token may use.' })
      ),
      'The operations that it may use in at least one of them, or that are of none.'
    )
  }),
  { description: 'A token with all that it could do now, and when it last did.' }
)

/** `token` is the value, shown this once. */
export const createdToken = named(
  'CreatedToken',
  object({
    ...fields,
    token: described(
      Type.String(),
      'The value, which is sent as `Authorization: Bearer …`. It is shown this once: only its digest is kept.'
    )
  }),
  { description: 'A token that has just been made, with its value.' }
)

/** Values that are not allowed get sentences of their own; see token-rules.ts. */
export const createBody = named(
  'CreateToken',
  object({
    name: described(
      text({ max: 128 }),
      'What to call it; blanks around it are left out, and it must not be empty.'
    ),
    scopes: described(
      maybe(Type.Array(withValues(Type.String(), scopes), { maxItems: 16 })),
      'At least one of `metrics`, `read`, `deploy`, `write`; of several the widest is kept, as it has the others. Any other value is refused.'
    ),
    expires_in_days: described(
      maybe(withValues(nullable(Type.Integer()), [...expiryChoices, null])),
      'How many days it is to work: 1, 7, 14, 30, 60 or 90. Left out or null, it does not expire.'
    ),
    project_ids: described(
      maybe(nullable(Type.Array(uuid(), { maxItems: 200 }))),
      'The projects that it is to be limited to, each one that you reach. Left out, null or empty, it reaches whatever its owner does.'
    )
  }),
  {
    description: 'A token that is to be made.',
    examples: [{ name: 'CI of the web shop', scopes: ['deploy'], expires_in_days: 90 }]
  }
)
export type NewToken = Static<typeof createBody>

export const tokenParams = { tokenId: described(uuid(), 'The `id` of one of your own tokens.') }
