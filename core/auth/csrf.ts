import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { cookieNames } from 'busbar/sdk'
import { csrfInvalid, csrfMissing, type Refusal } from '../access/decision.js'
import { readCookie } from './cookie.js'

/** Double submit: the header must repeat the cookie. Methods that change nothing are not asked. */
export function checkCsrf (method: string, headers: IncomingHttpHeaders): Refusal | null {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return null
  const expected = readCookie(headers.cookie, cookieNames.csrf)
  const header = headers['x-csrf-token']
  const given = Array.isArray(header) ? header[0] : header
  if (!expected || !given) return csrfMissing
  return isEqual(Buffer.from(expected), Buffer.from(given)) ? null : csrfInvalid
}

const isEqual = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)
