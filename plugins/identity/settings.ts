import { object, oneOf, type Static, Type } from 'busbar/sdk'
import { twoFactorPolicies } from './policy.js'

export const settings = object({
  two_factor: Type.Unsafe<(typeof twoFactorPolicies)[number]>({
    ...oneOf(twoFactorPolicies),
    default: 'optional',
    description: 'Who has to have a second factor: optional (nobody), admins, or everyone'
  })
})
export type Settings = Static<typeof settings>
