import { fromEnvironment, maybe, object, oneOf, type Static, Type } from 'busbar/sdk'
import { twoFactorPolicies } from './policy.js'

/** A year: what is meant to be longer is a mistake. */
const hours = { exclusiveMinimum: 0, maximum: 24 * 365 } as const

export const settings = object({
  two_factor: Type.Unsafe<(typeof twoFactorPolicies)[number]>({
    ...oneOf(twoFactorPolicies),
    default: 'optional',
    description: 'Who has to have a second factor: optional (no user), admins, or everyone'
  }),
  setup_code: maybe(
    fromEnvironment(
      'SETUP_CODE',
      Type.String({
        pattern: '^(?:off|.{12,})$',
        description: 'What making the first user takes; off lets the first caller do it'
      }),
      { secret: true, takes: 'at least 12 characters, or off to let the first caller set the platform up' }
    )
  ),
  jwt_expiry_hours: fromEnvironment(
    'JWT_EXPIRY_HOURS',
    Type.Number({ ...hours, default: 1, description: 'How long a session works before it is refreshed' })
  ),
  jwt_refresh_hours: fromEnvironment(
    'JWT_REFRESH_HOURS',
    Type.Number({ ...hours, default: 168, description: 'How long a session can be refreshed' })
  )
})
export type Settings = Static<typeof settings>
