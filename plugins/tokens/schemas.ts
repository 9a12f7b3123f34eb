import {
  list,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  projectRoles,
  roles,
  type Static,
  scopes,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

const fields = {
  id: uuid(),
  name: Type.String(),
  scopes: list(oneOf(scopes)),
  role_at_issue: oneOf(roles),
  pinned: Type.Boolean(),
  project_ids: list(uuid()),
  expires_at: nullable(timestamp()),
  created_at: timestamp()
}

export const token = named('Token', object({ ...fields, last_used_at: nullable(timestamp()) }))
/** Of what an operation is used: of one project at a time, of all that the token reaches, or of none. */
export const concerns = ['project', 'projects', 'platform'] as const

/** What a token could do now. `role` is the effective one, and that of its owner in each project; times are to about five minutes. */
export const tokenReach = named(
  'TokenReach',
  object({
    ...fields,
    last_used_at: nullable(timestamp()),
    role: oneOf(roles),
    projects: list(
      object({
        id: uuid(),
        name: Type.String(),
        slug: Type.String(),
        role: oneOf(projectRoles),
        last_used_at: nullable(timestamp())
      })
    ),
    operations: list(
      object({
        method: Type.String(),
        path: Type.String(),
        summary: Type.String(),
        group: Type.String(),
        concerns: oneOf(concerns),
        last_used_at: nullable(timestamp())
      })
    )
  })
)

/** `token` is the value, shown this once. */
export const createdToken = named('CreatedToken', object({ ...fields, token: Type.String() }))

/** Values that are not allowed get sentences of their own; see token-rules.ts. */
export const createBody = named(
  'CreateToken',
  object({
    name: text({ max: 128 }),
    scopes: maybe(Type.Array(Type.String(), { maxItems: 16 })),
    expires_in_days: maybe(nullable(Type.Integer())),
    project_ids: maybe(nullable(Type.Array(uuid(), { maxItems: 200 })))
  })
)
export type NewToken = Static<typeof createBody>
