import {
  list,
  maybe,
  named,
  nullable,
  object,
  pagingQuery,
  type Static,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

const record = named(
  'AuditRecord',
  object({
    id: uuid(),
    user_id: nullable(uuid()),
    user_email: nullable(Type.String()),
    user_username: nullable(Type.String()),
    /** The token the request came with; null for a session, and for a caller without a credential. */
    token_id: nullable(uuid()),
    token_name: Type.String(),
    action: Type.String(),
    resource_type: Type.String(),
    resource_id: nullable(Type.String()),
    /** Empty when the resource is gone, or its kind has no names. */
    resource_name: Type.String(),
    details: Type.Record(Type.String(), Type.Unknown()),
    ip_address: nullable(Type.String()),
    created_at: timestamp()
  })
)
export type AuditRecord = Static<typeof record>

export const page = named('AuditRecordPage', object({ items: list(record), total: Type.Integer() }))

const filterFields = {
  action: maybe(Type.String()),
  from: maybe(Type.String()),
  to: maybe(Type.String()),
  user_id: maybe(Type.String()),
  resource_type: maybe(Type.String()),
  resource_id: maybe(Type.String())
}
export const filterQuery = object(filterFields)
export type FilterQuery = Static<typeof filterQuery>
export const listQuery = object({ ...filterFields, ...pagingQuery })
