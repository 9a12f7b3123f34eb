import { list, maybe, nullable, object, oneOf, pagingQuery, roles, scopes, text, timestamp, Type, uuid, type Static } from 'busbar/sdk'

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

export const token = object({ ...fields, last_used_at: nullable(timestamp()) })
/** `token` is the value, shown this once. */
export const createdToken = object({ ...fields, token: Type.String() })

/** Values that are not allowed get sentences of their own; see token-rules.ts. */
export const createBody = object({
  name: text({ max: 128 }),
  scopes: maybe(Type.Array(Type.String(), { maxItems: 16 })),
  expires_in_days: maybe(nullable(Type.Integer())),
  project_ids: maybe(nullable(Type.Array(uuid(), { maxItems: 200 })))
})
export type NewToken = Static<typeof createBody>

export const listQuery = object(pagingQuery)
