import {
  described,
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
    id: described(nullable(uuid()), 'What the variable is called in the path of `reveal`.'),
    key: described(Type.String(), 'The name under which a container finds it.'),
    value: described(
      maybe(Type.String()),
      'The value in clear. Left out where the caller may not see it: of a secret, for every token, and where it cannot be decrypted.'
    ),
    is_secret: described(
      Type.Boolean(),
      'Whether the value is shown by `reveal` alone, and hidden in logs of deployments.'
    ),
    created_at: described(timestamp(), 'When the variable was set first.'),
    updated_at: described(timestamp(), 'When its value or secrecy was changed last.')
  }),
  { description: 'An environment variable of a project or of an application.' }
)
export type VariableAnswer = Static<typeof variable>

const input = named(
  'VariableInput',
  object({
    key: described(
      Type.String({ maxLength: 1000 }),
      'The name: letters, digits and `_`, not beginning with a digit, and once in the set. A blank one is left out, as an empty row of a form.'
    ),
    value: described(
      maybe(Type.String()),
      'The value, at most 64 KiB in UTF-8, without NUL. Required unless `unchanged` is true, which does not look at it.'
    ),
    is_secret: described(
      maybe(Type.Boolean()),
      'Whether only `reveal` shows the value, and logs of deployments hide it. Left out, it stays as it is stored; a new variable is readable. A secret becomes readable only together with a new `value`.'
    ),
    unchanged: described(
      maybe(Type.Boolean()),
      'True keeps the stored value of this key, which a client does not know of a secret. It must be stored. False unless given.'
    )
  }),
  { description: 'One variable of the set that is to be.' }
)
export type VariableInput = Static<typeof input>

export const updateBody = named(
  'ReplaceVariables',
  object({
    vars: described(
      Type.Array(input, { maxItems: mostVariables }),
      'The whole set, at most 500: variables that are not in it are deleted, an empty list deletes all.'
    )
  }),
  {
    description: 'The whole set of variables, which takes the place of the one before.',
    examples: [
      {
        vars: [
          { key: 'LOG_LEVEL', value: 'info' },
          { key: 'DATABASE_URL', value: 'postgres://shop:secret@db/shop', is_secret: true },
          { key: 'API_KEY', unchanged: true }
        ]
      }
    ]
  }
)
export const updatedAnswer = statusResponse
export const revealAnswer = named(
  'RevealedVariable',
  object({ value: described(Type.String(), 'The value in clear.') }),
  { description: 'What a variable holds.' }
)
export const revealParams = {
  envVarId: described(uuid(), 'The `id` of the variable, as the list of this project or application has it.')
}
