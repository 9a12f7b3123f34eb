import type { ProxiedRequest } from 'busbar/api/requests'
import { isUuid } from 'busbar/sdk'
import { type AddressTest, originOf } from 'busbar/sdk/http1'
import { hostnameIn } from './hostname-in.js'

/** Caddy writes one of some hundred characters; heads may be 36 KiB long, of which it writes each byte as six. */
const longestLine = 448 * 1024
/** Of nginx, for a client that has gone away before there was an answer. */
const clientGone = 499
const nobody: AddressTest = () => false

/** A line of Caddy's access log; null where it is none. `isTrusted`: the proxies in front that are believed whom they speak for. */
export function readAccessLine(line: string, isTrusted: AddressTest = nobody): ProxiedRequest | null {
  const entry = entryIn(line)
  if (entry === null) return null
  const { request, resp_headers: answered, ts, duration, size, status, bytes_read: read } = entry
  const { host, method, uri, remote_ip: address, headers } = objectOf(request)
  const took = numberOf(duration)
  const at = numberOf(ts)
  if (typeof host !== 'string' || typeof method !== 'string' || typeof uri !== 'string') return null
  if (at === null || took === null) return null
  const id = firstOf(objectOf(answered)['X-Request-Id'])
  const length = firstOf(objectOf(headers)['Content-Length'])
  return {
    id: id !== null && isUuid(id) ? id : null,
    hostname: hostnameIn(host),
    method,
    path: uri,
    // 0: no handler has answered, which each does unless there is nobody to.
    statusCode: numberOf(status) || clientGone,
    latencyMs: Math.max(0, Math.round(took * 1000)),
    requestSize: numberOf(read) ?? (length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null),
    responseSize: numberOf(size),
    clientIp:
      typeof address === 'string'
        ? originOf(address, allOf(objectOf(headers)['X-Forwarded-For']), isTrusted).address
        : null,
    userAgent: firstOf(objectOf(headers)['User-Agent']),
    // It is written when the answer ends.
    at: Math.round((at - took) * 1000)
  }
}

/** What the proxy itself answered because no application did; see `Proxy-Status` in the configuration. */
export function isProxyError(line: string): boolean {
  const entry = entryIn(line)
  const told = entry === null ? null : firstOf(objectOf(entry.resp_headers)['Proxy-Status'])
  return told?.includes('error=') === true
}

type Fields = Readonly<Record<string, unknown>>

function entryIn(line: string): Fields | null {
  if (line.length > longestLine || !line.startsWith('{')) return null
  try {
    const entry = objectOf(JSON.parse(line))
    return typeof entry.logger === 'string' && entry.logger.startsWith('http.log.access') ? entry : null
  } catch {
    return null
  }
}

const objectOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null
/** Of several headers of a name, which are one list. */
const allOf = (value: unknown): string | undefined => (Array.isArray(value) ? value.join(',') : undefined)
const firstOf = (value: unknown): string | null =>
  Array.isArray(value) && typeof value[0] === 'string' ? value[0] : null
