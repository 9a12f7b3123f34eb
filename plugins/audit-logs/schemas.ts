import {
  described,
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
    id: described(uuid(), 'What the record is called.'),
    user_id: described(
      nullable(uuid()),
      'Who did it, or whom an attempt without a credential was about; null where the platform knows no such user.'
    ),
    user_email: described(
      nullable(Type.String()),
      'The address of that user at the time; of an attempt to sign in the one that was claimed. Null where there is none.'
    ),
    user_username: described(
      nullable(Type.String()),
      'The name of that user at the time; null where the platform knows no such user.'
    ),
    token_id: described(
      nullable(uuid()),
      'The token that the request came with; null for a session, and for a caller without a credential.'
    ),
    token_name: described(Type.String(), 'What that token was called at the time; empty without one.'),
    action: described(
      Type.String(),
      'What was done, as a verb and what it was done to: `create_project`. `GET /api/audit-logs/actions` has those that occur.'
    ),
    resource_type: described(
      Type.String(),
      'The kind of what it was done to: `project`, `application`, `user`.'
    ),
    resource_id: described(
      nullable(Type.String()),
      'The id of what it was done to; null where nothing came of it, or there is no id.'
    ),
    resource_name: described(
      Type.String(),
      'What that is called now; empty when it is gone, or its kind has no names.'
    ),
    details: described(
      Type.Record(Type.String(), Type.Unknown()),
      '`outcome` is `success` or `failure`; of a failure there are `status`, `code` and `error` of the answer. Some actions tell more, as the end of a terminal its `reason`. Bodies of requests are never recorded.'
    ),
    ip_address: described(
      nullable(Type.String()),
      'Where the request came from; null where that is not known.'
    ),
    created_at: described(timestamp(), 'When it was done.')
  }),
  { description: 'Who did what to which resource, with the outcome.' }
)
export type AuditRecord = Static<typeof record>

export const page = named(
  'AuditRecordPage',
  object({
    items: described(list(record), 'The records of this page, the newest first.'),
    total: described(
      Type.Integer(),
      'How many records match the filters, on all pages; of more than 10 000 it may be some minutes old.'
    )
  }),
  { description: 'A page of the audit log.' }
)

const textLike = (example: string) => maybe(Type.String({ examples: [example] }))
const filterFields = {
  action: described(
    textLike('create_project'),
    'Only this action, written exactly, as `GET /api/audit-logs/actions` has it.'
  ),
  from: described(textLike('2026-01-31T12:00:00Z'), 'Only what was done at this time or later, RFC 3339.'),
  to: described(textLike('2026-02-01T00:00:00Z'), 'Only what was done before this time, RFC 3339.'),
  user_id: described(textLike('3f0c9a52-7d5e-4b1e-8a64-1f0f3b1c9d11'), 'Only what this user did, by `id`.'),
  resource_type: described(
    textLike('application'),
    'Only what was done to this kind of resource, written exactly.'
  ),
  resource_id: described(
    textLike('9b2d4c1e-5a6f-4e07-b3d8-2c7e9f10a4b5'),
    'Only what was done to the resource with this id.'
  )
}
export const filterQuery = object(filterFields)
export type FilterQuery = Static<typeof filterQuery>
export const listQuery = object({ ...filterFields, ...pagingQuery })

export const action = described(Type.String(), 'An action that occurs, as `action` of a record.')
export const exportHeaders = {
  'X-Truncated': described(
    Type.Literal('true'),
    'Sent when there are more than the 10 000 records that an export holds at most; narrow the filters then.'
  )
}
