import type { Role } from 'busbar/sdk'

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

/** `JWT_EXPIRY_HOURS` (1) and `JWT_REFRESH_HOURS` (168); fractions are allowed. */
export function readSessionPolicy(environment: (name: string) => string | undefined): SessionPolicy {
  return {
    secretMs: hours(environment, 'JWT_EXPIRY_HOURS', 1),
    refreshMs: hours(environment, 'JWT_REFRESH_HOURS', 168)
  }
}

function hours(environment: (name: string) => string | undefined, name: string, fallback: number): number {
  const text = environment(name)
  const value = text === undefined ? fallback : Number(text)
  if (!(value > 0 && value <= 24 * 365)) {
    throw new Error(`${name} is ${JSON.stringify(text)}: give a number of hours above 0, at most ${24 * 365}`)
  }
  return Math.round(value * hourMs)
}
