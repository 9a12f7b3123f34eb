import type { Role } from 'busbar/sdk'
import type { Settings } from './settings.js'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export const lockOutPolicy = { attempts: 5, windowMs: 15 * minuteMs } as const
/** Wrong codes for one account from all devices that have not signed in to it before. */
export const unknownDevicesPolicy = { attempts: 20, windowMs: 24 * hourMs } as const
export const challengePolicy = { attempts: 5, lifetimeMs: 5 * minuteMs } as const
export const passwordPolicy = { minCharacters: 8, maxBytes: 1024 } as const
export const recoveryCodes = 10
export const passwordResetPolicy = { lifetimeMs: 30 * minuteMs, perHour: 3 } as const
export const invitationPolicy = { lifetimeMs: 7 * 24 * hourMs } as const

export const twoFactorPolicies = ['optional', 'admins', 'everyone'] as const
/** Who has to have a second factor. */
export type TwoFactorPolicy = (typeof twoFactorPolicies)[number]

/** True for who still has to set one up before anything else. */
export const mustEnroll = (policy: TwoFactorPolicy, role: Role, hasFactor: boolean): boolean =>
  !hasFactor && (policy === 'everyone' || (policy === 'admins' && role === 'admin'))

/** How long a session secret works, and how long the session can be refreshed. */
export interface SessionPolicy {
  readonly secretMs: number
  readonly refreshMs: number
}

export const sessionPolicyOf = ({
  jwt_expiry_hours,
  jwt_refresh_hours
}: Pick<Settings, 'jwt_expiry_hours' | 'jwt_refresh_hours'>): SessionPolicy => ({
  secretMs: Math.round(jwt_expiry_hours * hourMs),
  refreshMs: Math.round(jwt_refresh_hours * hourMs)
})
