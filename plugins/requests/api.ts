import { extensionPoint, service } from 'busbar/sdk'

/** One request that a proxy has answered. */
export interface ProxiedRequest {
  /** UUID; the `X-Request-Id` that the application was given. Null: the proxy gave none; one is made. */
  readonly id: string | null
  /** As asked for, lower case, without a port. */
  readonly hostname: string
  readonly method: string
  /** With its query; values of secrets are masked when it is stored. */
  readonly path: string
  readonly statusCode: number
  readonly latencyMs: number
  readonly requestSize: number | null
  readonly responseSize: number | null
  readonly clientIp: string | null
  readonly userAgent: string | null
  /** When the request came, as milliseconds since 1970. */
  readonly at: number
  /** Whose it is. Undefined: found by hostname and path from the routing table. Null: nobody's. */
  readonly applicationId?: string | null
}

/**
 * A log that a proxy writes to a file, a line each request, rotated by renaming it within its folder: `access.log` becomes
 * `access-<anything>.log`. Rotated ones stay as they are, uncompressed, for as long as the platform may be away: what is
 * compressed or deleted before it was read is lost. A file that is cut down to nothing is read from its beginning again.
 */
export interface AccessLogFile {
  /** Absolute. It need not exist yet. */
  readonly path: string
  /** Of a line without its end; null: the line is no request. Never throws. Lines are foreign text: linear time. */
  parse(line: string): ProxiedRequest | null
}
/** By the id of the plugin that drives the proxy. One process of an installation reads each of the files at a time. */
export const accessLogFiles = extensionPoint<AccessLogFile>('requests.accessLogFiles')

/** For proxies inside this process. */
export interface RequestRecorder {
  /** Takes a request note; never waits and never throws. What comes faster than it can be stored is dropped and counted. */
  record(request: ProxiedRequest): void
}
export const requestRecorder = service<RequestRecorder>('requests.recorder')
