import type { IncomingMessage } from 'node:http'
import { setsPlatformCookie, withoutPlatformCookies } from './platform-cookies.js'

/** RFC 9110, 7.6.1: these concern one connection and are never passed on. */
const hopByHop = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'transfer-encoding', 'upgrade'
])
/** What a client says of its own origin is not believed: nobody stands between it and this port. */
const origin = new Set(['forwarded', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'])

export type HeaderBag = Record<string, string | string[]>

/** How the body of a request is framed; `unknown` is a coding this forwarder does not speak. */
export type Framing = 'none' | 'length' | 'chunked' | 'unknown'

export function framingOf (request: IncomingMessage): Framing {
  const coding = request.headers['transfer-encoding']
  if (coding !== undefined) return coding.trim().toLowerCase() === 'chunked' ? 'chunked' : 'unknown'
  const length = request.headers['content-length']
  return length === undefined || Number(length) === 0 ? 'none' : 'length'
}

/** The headers for the container; the framing is set anew, so that never two of them are sent. */
export function requestHeaders (request: IncomingMessage, framing: Framing): HeaderBag {
  const headers = copied(request.rawHeaders, (name, value) => {
    if (origin.has(name) || name === 'content-length') return undefined
    return name === 'cookie' ? withoutPlatformCookies(value) : value
  })
  if (framing === 'chunked') headers['Transfer-Encoding'] = 'chunked'
  else if (framing === 'length' || request.headers['content-length'] !== undefined) headers['Content-Length'] = String(request.headers['content-length'])
  else if (expectsBody(request.method)) headers['Content-Length'] = '0'
  headers['X-Forwarded-For'] = plainAddress(request.socket.remoteAddress)
  headers['X-Forwarded-Proto'] = 'http'
  if (request.headers.host !== undefined) headers['X-Forwarded-Host'] = request.headers.host
  return headers
}

/** The answer's headers, ready for `writeHead`, which frames the body anew. */
export function responseHeaders (answer: IncomingMessage): HeaderBag {
  const isCoded = answer.headers['transfer-encoding'] !== undefined
  return copied(answer.rawHeaders, (name, value) => {
    if (name === 'set-cookie' && setsPlatformCookie(value)) return undefined
    return name === 'content-length' && isCoded ? undefined : value
  })
}

function copied (rawHeaders: readonly string[], keep: (name: string, value: string) => string | undefined): HeaderBag {
  const dropped = namedByConnection(rawHeaders)
  const spelling = new Map<string, string>()
  const headers: HeaderBag = Object.create(null)
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const written = rawHeaders[index] ?? ''
    const name = written.toLowerCase()
    if (hopByHop.has(name) || dropped?.has(name) === true) continue
    const value = keep(name, rawHeaders[index + 1] ?? '')
    if (value === undefined) continue
    const key = spelling.get(name) ?? written
    spelling.set(name, key)
    const before = headers[key]
    headers[key] = before === undefined ? value : typeof before === 'string' ? [before, value] : [...before, value]
  }
  return headers
}

function namedByConnection (rawHeaders: readonly string[]): Set<string> | undefined {
  let names: Set<string> | undefined
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'connection') continue
    for (const token of (rawHeaders[index + 1] ?? '').split(',')) (names ??= new Set()).add(token.trim().toLowerCase())
  }
  // A client cannot have these dropped by naming them: the container needs them.
  for (const kept of ['host', 'content-length', 'cookie', 'authorization']) names?.delete(kept)
  return names
}

const expectsBody = (method: string | undefined): boolean => method === 'POST' || method === 'PUT' || method === 'PATCH'

const plainAddress = (address: string | undefined): string => (address ?? 'unknown').replace(/^::ffff:/, '')
