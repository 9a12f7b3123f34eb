import { randomBytes } from 'node:crypto'
import { type Cookie, cookieNames } from 'busbar/sdk'
import type { SessionGrant } from '../api.js'
import type { SessionPolicy } from '../policy.js'

const session = { name: cookieNames.session, path: '/', httpOnly: true } as const
const refresh = { name: cookieNames.refresh, path: '/api/auth', httpOnly: true } as const
// Readable on purpose: the page sends it back in X-CSRF-Token, which another site cannot.
const csrf = { name: cookieNames.csrf, path: '/', httpOnly: false } as const

export function sessionCookies(
  secret: string,
  refreshSecret: string,
  policy: SessionPolicy
): readonly Cookie[] {
  const secretSeconds = Math.ceil(policy.secretMs / 1000)
  const refreshSeconds = Math.ceil(policy.refreshMs / 1000)
  return [
    { ...session, value: secret, maxAgeSeconds: secretSeconds },
    { ...refresh, value: refreshSecret, maxAgeSeconds: refreshSeconds },
    { ...csrf, value: randomBytes(32).toString('hex'), maxAgeSeconds: refreshSeconds }
  ]
}

export const signedOutCookies: readonly Cookie[] = Object.freeze(
  [session, refresh, csrf].map(cookie => Object.freeze({ ...cookie, value: '', maxAgeSeconds: -1 }))
)

export const withCookies = (grant: SessionGrant, more: readonly Cookie[]): SessionGrant => ({
  ...grant,
  cookies: [...grant.cookies, ...more]
})
