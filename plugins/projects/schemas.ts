import { maybe, nullable, object, pagingQuery, statusResponse, timestamp, Type, uuid, type Static } from 'busbar/sdk'

/** Something to read: not blank, no control characters. */
const name = Type.String({ minLength: 1, maxLength: 100, pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f]*$' })

/** Part of container, image and network names, so it is as narrow as those. */
const slug = Type.String({ minLength: 1, maxLength: 40, pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' })

const fields = {
  id: uuid(),
  name: Type.String(),
  slug: Type.String(),
  user_id: uuid(),
  server_id: nullable(uuid()),
  shared: Type.Boolean(),
  created_at: timestamp(),
  updated_at: timestamp()
}

export const project = object(fields)
export type ProjectRow = Static<typeof project>

/** `last_deployed_at` is left out until something in the project has been deployed. */
export const projectListItem = object({ ...fields, last_deployed_at: maybe(timestamp()) })
export type ProjectListRow = Static<typeof projectListItem>

export const createBody = object({ name, slug })
export const updateBody = object({ name: maybe(name) })
export const sharingBody = object({ shared: Type.Boolean() })
export const transferBody = object({ user_id: uuid() })
export const listQuery = object(pagingQuery)
export const deletedAnswer = statusResponse
