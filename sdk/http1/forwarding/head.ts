import type { IncomingMessage } from 'node:http'
import { hasTooManyHeaders, headFault } from '../request.js'
import type { Refusal } from './refusal.js'

/** How the body of a request is framed. */
type Framing = 'none' | 'length' | 'chunked'

/** The name in a `Host`: in lower case, without a port. */
export const hostnameOf = ({ host }: Pick<Head, 'host'>): string => host.toLowerCase().replace(/:\d*$/, '')

/** What a request asks for. */
export interface Head {
  readonly path: string
  /** The `Host` that the container gets: never empty, and never two. */
  readonly host: string
  readonly framing: Framing
}

/** Reads the head of a request; why it is refused where it is not one that may be handed on. */
export function readHead(request: IncomingMessage): Head | Refusal {
  if (hasTooManyHeaders(request)) return 'tooManyHeaders'
  const target = targetOf(request.method ?? '', request.url ?? '')
  if (target === undefined) return 'badTarget'
  if (headFault(request) !== null) return 'badHead'
  const framing = framingOf(request)
  if (framing === undefined) return 'badCoding'
  const host = target.host ?? request.headers.host ?? ownHost(request)
  return { path: target.path, host, framing }
}

/** Undefined for a coding that this forwarder does not speak. */
function framingOf({ headers }: IncomingMessage): Framing | undefined {
  const coding = headers['transfer-encoding']
  if (coding !== undefined) return coding.trim().toLowerCase() === 'chunked' ? 'chunked' : undefined
  const length = headers['content-length']
  return length === undefined || Number(length) === 0 ? 'none' : 'length'
}

/**
 * The parts of a request target in origin, absolute or asterisk form. The host of an absolute one stands
 * in for the `Host` header (RFC 9112, 3.2.2).
 */
export function targetOf(
  method: string,
  target: string
): { readonly path: string; readonly host?: string } | undefined {
  if (target.startsWith('/')) return { path: target }
  if (target === '*') return method === 'OPTIONS' ? { path: target } : undefined
  const absolute = /^http:\/\/([\w.~%:[\]-]+)(?=[/?#]|$)/i.exec(target)
  const host = absolute?.[1]
  if (absolute === null || host === undefined) return undefined
  const path = target.slice(absolute[0].length)
  return { host, path: path.startsWith('/') ? path : `/${path}` }
}

/** HTTP/1.0 asks without a host: the address that it came to. */
function ownHost({ socket: { localAddress = '127.0.0.1', localPort = 80 } }: IncomingMessage): string {
  return localAddress.includes(':') ? `[${localAddress}]:${localPort}` : `${localAddress}:${localPort}`
}
