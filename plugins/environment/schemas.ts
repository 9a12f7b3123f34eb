import {
  maybe,
  named,
  nullable,
  object,
  type Static,
  statusResponse,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

/** How many variables one project or one application may have. */
const mostVariables = 500
/** Of one value, in UTF-8. */
export const mostValueBytes = 64 * 1024
/** Of the whole set: no process can be started with more than about 2 MiB of environment anyway. */
export const mostBodyBytes = 4 * 1024 * 1024

/** `value` is left out where the caller may not see it. */
export const variable = named(
  'Variable',
  object({
    id: nullable(uuid()),
    key: Type.String(),
    value: maybe(Type.String()),
    is_secret: Type.Boolean(),
    created_at: timestamp(),
    updated_at: timestamp()
  })
)
export type VariableAnswer = Static<typeof variable>

const input = named(
  'VariableInput',
  object({
    key: Type.String({ maxLength: 1000 }),
    value: maybe(Type.String()),
    is_secret: maybe(Type.Boolean()),
    unchanged: maybe(Type.Boolean())
  })
)
export type VariableInput = Static<typeof input>

export const updateBody = named(
  'ReplaceVariables',
  object({ vars: Type.Array(input, { maxItems: mostVariables }) })
)
export const updatedAnswer = statusResponse
export const revealAnswer = named('RevealedVariable', object({ value: Type.String() }))
