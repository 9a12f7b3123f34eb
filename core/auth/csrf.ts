import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { cookieNames } from 'busbar/sdk'
import { readCookie } from './cookie.js'
import { type Refusal, refusal } from './refusal.js'

const remedy = `send the value of the cookie ${cookieNames.csrf} as X-CSRF-Token`
const csrfMissing = refusal(403, 'E_CSRF', 'missing csrf token', remedy)
const csrfInvalid = refusal(403, 'E_CSRF', 'invalid csrf token', remedy)

/** Double submit: the header must repeat the cookie. Methods that change nothing are not asked. */
export function checkCsrf(method: string, headers: IncomingHttpHeaders): Refusal | null {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return null
  const expected = readCookie(headers.cookie, cookieNames.csrf)
  const header = headers['x-csrf-token']
  const given = Array.isArray(header) ? header[0] : header
  if (!expected || !given) return csrfMissing
  return isEqual(Buffer.from(expected), Buffer.from(given)) ? null : csrfInvalid
}

const isEqual = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)
