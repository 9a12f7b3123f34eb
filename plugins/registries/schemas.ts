import {
  named,
  nullable,
  object,
  oneOf,
  type Static,
  statusResponse,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

/** The password is never answered. */
export const account = named(
  'RegistryAccount',
  object({
    id: uuid(),
    registry: Type.String(),
    username: Type.String(),
    created_at: timestamp(),
    updated_at: timestamp()
  })
)
export type AccountAnswer = Static<typeof account>

/** The password may be a key file of several lines, or a token of some thousand characters. */
export const accountBody = named(
  'SetRegistryAccount',
  object({
    registry: Type.String({ minLength: 1, maxLength: 300 }),
    username: Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f:]+$' }),
    password: text({ min: 1, max: 16_384 })
  })
)
export type AccountBody = Static<typeof accountBody>

export const deletedAnswer = statusResponse
export const trialAnswer = named(
  'RegistryAccountTrial',
  object({
    status: oneOf(['ok', 'refused', 'unreachable']),
    reason: nullable(Type.String())
  })
)
