import type { IncomingMessage } from 'node:http'
import { plainAddress } from '../../address.js'
import type { Head } from './head.js'
import { setsPlatformCookie, withoutPlatformCookies } from './platform-cookies.js'
import type { Route } from './route.js'
import { setsCookieOfOthers } from './sibling-cookies.js'

/** RFC 9110, 7.6.1: these concern one connection and are never passed on; of `proxy-…` none is. */
const hopByHop = new Set(['connection', 'keep-alive', 'te', 'transfer-encoding', 'upgrade', 'http2-settings'])
const isHopByHop = (name: string): boolean => hopByHop.has(name) || name.startsWith('proxy-')
/**
 * What a client says of its own origin is not handed on: it is told anew, as far as it is believed. `Proxy`
 * is no header at all, but CGI makes `HTTP_PROXY` of it, through which programs then speak.
 */
const untrusted = new Set([
  'forwarded',
  'x-real-ip',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'proxy'
])
/** Set anew for each request, so that never two of them are sent; trailers of requests are not passed on. */
const framed = new Set(['host', 'content-length', 'trailer'])
/** Meant for the other end: naming them in `Connection` does not take them out (RFC 9110, 7.6.1). */
const endToEnd = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'cookie',
  'set-cookie',
  'authorization',
  'origin',
  'expect',
  'cache-control'
])

/** Headers as node writes them, by their spelling. */
export type HeaderBag = Record<string, string | string[]>

/** What the headers of a request depend on beside its head. */
type RequestRoute = Pick<Route, 'origin' | 'isPlatform'>
/** The same of an answer. */
type AnswerRoute = Pick<Route, 'ownHost' | 'isPlatform'>

/** The headers for the container; with an id of the request the one that the client gave it is dropped. */
export function requestHeaders(
  request: IncomingMessage,
  { host, framing }: Head,
  { origin, isPlatform }: RequestRoute = {},
  requestId?: string
): HeaderBag {
  // First, where a server that reads a limited number of headers finds them.
  const headers: HeaderBag = Object.assign(Object.create(null), { Host: host })
  if (framing === 'chunked') headers['Transfer-Encoding'] = 'chunked'
  else if (request.headers['content-length'] !== undefined)
    headers['Content-Length'] = request.headers['content-length']
  else if (expectsBody(request.method)) headers['Content-Length'] = '0'
  headers['X-Forwarded-For'] = origin?.forwardedFor ?? plainAddress(request.socket.remoteAddress ?? 'unknown')
  headers['X-Forwarded-Proto'] = origin?.proto ?? 'http'
  headers['X-Forwarded-Host'] = host
  if (requestId !== undefined) headers['X-Request-Id'] = requestId
  return Object.assign(
    headers,
    copied(request.rawHeaders, (name, value) => {
      if (untrusted.has(name) || framed.has(name)) return undefined
      if (name === 'x-request-id' && requestId !== undefined) return undefined
      return name === 'cookie' && isPlatform !== true ? withoutPlatformCookies(value) : value
    })
  )
}

/**
 * The answer's headers, ready for `writeHead`, which frames the body anew; `hasTrailers` when some can follow. With a
 * host of its own the application sets cookies for no other.
 */
export function responseHeaders(
  answer: IncomingMessage,
  hasTrailers: boolean,
  { ownHost, isPlatform }: AnswerRoute
): HeaderBag {
  const isCoded = answer.headers['transfer-encoding'] !== undefined
  return copied(answer.rawHeaders, (name, value) => {
    if (name === 'set-cookie' && isPlatform !== true) {
      if (setsPlatformCookie(value)) return undefined
      if (ownHost !== undefined && setsCookieOfOthers(value, ownHost)) return undefined
    }
    if (name === 'trailer' && !(isCoded && hasTrailers)) return undefined
    return name === 'content-length' && isCoded ? undefined : value
  })
}

/** What may follow a body: neither framing nor cookies. */
export const responseTrailers = (answer: IncomingMessage): HeaderBag =>
  copied(answer.rawTrailers, (name, value) => (framed.has(name) || name === 'set-cookie' ? undefined : value))

function copied(
  rawHeaders: readonly string[],
  keep: (name: string, value: string) => string | undefined
): HeaderBag {
  const dropped = namedByConnection(rawHeaders)
  const spelling = new Map<string, string>()
  const headers: HeaderBag = Object.create(null)
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const written = rawHeaders[index] ?? ''
    const name = written.toLowerCase()
    const known = asHeader(name)
    if (isHopByHop(known) || dropped?.has(name) === true) continue
    const value = keep(known, rawHeaders[index + 1] ?? '')
    if (value === undefined) continue
    const key = spelling.get(name)
    if (key === undefined) {
      spelling.set(name, written)
      headers[written] = value
      continue
    }
    const before = headers[key]
    // In place: many of one name would otherwise be copied for each of them.
    if (Array.isArray(before)) before.push(value)
    else headers[key] = [before ?? '', value]
  }
  return headers
}

/** CGI, and all that took its variables over, makes the same of `X_Forwarded_For` as of `X-Forwarded-For`. */
const asHeader = (name: string): string => (name.includes('_') ? name.replaceAll('_', '-') : name)

function namedByConnection(rawHeaders: readonly string[]): Set<string> | undefined {
  let names: Set<string> | undefined
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'connection') continue
    names ??= new Set()
    for (const token of (rawHeaders[index + 1] ?? '').split(',')) names.add(token.trim().toLowerCase())
  }
  for (const name of endToEnd) names?.delete(name)
  return names
}

const expectsBody = (method: string | undefined): boolean =>
  method === 'POST' || method === 'PUT' || method === 'PATCH'
